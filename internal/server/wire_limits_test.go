package server

import "time"

// Bounds of package wire that the tests here reach and exceed.
const (
	maxConcurrent    = 64
	maxSaid          = 64 << 10
	maxClientName    = 100
	maxSubscriptions = 100
	maxParams        = 64
	maxOutput        = 64 << 20
	maxHead          = 4 << 10
	drain            = 5 * time.Second
)
