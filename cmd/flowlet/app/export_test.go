package app

var Stuck = stuck
