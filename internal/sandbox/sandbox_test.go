package sandbox

import (
	"encoding/json"
	"testing"
	"time"
)

func TestEnumText(t *testing.T) {
	type both struct {
		Level   Level
		Network Network
	}
	for i, want := range []string{
		`{"Level":"none","Network":"none"}`, `{"Level":"partial","Network":"loopback"}`, `{"Level":"full","Network":"full"}`,
	} {
		in := both{Level(i), Network(i)}
		got, err := json.Marshal(in)
		if err != nil || string(got) != want {
			t.Errorf("Marshal(%v) = %s, %v, want %s", in, got, err, want)
		}
		var out both
		if err := json.Unmarshal(got, &out); err != nil || out != in {
			t.Errorf("Unmarshal(%s) = %v, %v, want %v", got, out, err, in)
		}
	}
	for _, s := range []string{"", "None", "FULL", "loopback ", "x"} {
		if l, err := ParseLevel(s); err == nil {
			t.Errorf("ParseLevel(%q) = %v, want an error", s, l)
		}
	}
	if n, err := ParseNetwork("partial"); err == nil {
		t.Errorf("ParseNetwork(partial) = %v, want an error", n)
	}
	if _, err := Level(7).MarshalText(); err == nil {
		t.Error("Level(7).MarshalText() has no error")
	}
	if got := Network(-1).String(); got != "Network(-1)" {
		t.Errorf("Network(-1).String() = %q", got)
	}
}

func TestLimitsWithDefaults(t *testing.T) {
	if got := (Limits{}).WithDefaults(); got != DefaultLimits() {
		t.Errorf("zero limits = %+v, want %+v", got, DefaultLimits())
	}
	l := Limits{Timeout: time.Minute, Output: 5}.WithDefaults()
	if l.CPU != time.Minute || l.Output != 5 || l.Memory != 2<<30 {
		t.Errorf("limits = %+v, want CPU as the timeout and the rest filled in", l)
	}
}
