package server

import "time"

// These are bounds of package wire, which the tests here reach and pass.
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
