package app

var (
	AppArmor = appArmor
	Stuck    = stuck
	Tune     = tune
)
