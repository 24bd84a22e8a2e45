package app

var (
	AppArmor     = appArmor
	MountsImages = mountsImages
	Stuck        = stuck
	Tune         = tune
)
