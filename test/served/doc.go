// Package served runs the real program as tests of whole servers need it: in a
// home of its own, with clients over standard input and output and over HTTP, and
// with a look at what each process has open.
//
// It checks nothing but that servers start, end well and log no errors; what they
// answer is the concern of the tests.
package served
