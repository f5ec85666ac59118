package diag

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestString(t *testing.T) {
	tests := []struct {
		d    Diagnostic
		want string
	}{
		{Diagnostic{Code: "c", Message: "m"}, "c: m"},
		{Diagnostic{Code: "c"}, "c"},
		{Diagnostic{Code: "c", Message: "m", File: "f"}, "f: c: m"},
		{Diagnostic{Code: "c", Message: "m", File: "f", Line: 3}, "f:3: c: m"},
		{Diagnostic{Code: "c", Message: "m", File: "f", Line: 3, Column: 7}, "f:3:7: c: m"},
		{Diagnostic{Code: "c", Message: "m", Line: 3}, "c: m"}, // a line of what?
	}
	for _, tt := range tests {
		if got := tt.d.String(); got != tt.want || tt.d.Error() != got {
			t.Errorf("String(%+v) = %q, Error() = %q, want %q", tt.d, got, tt.d.Error(), tt.want)
		}
	}
}

func TestJSON(t *testing.T) {
	got, err := json.Marshal(Diagnostic{Code: "c", Severity: Warning, File: "f", Line: 1, Message: "m"})
	if want := `{"code":"c","severity":"warning","file":"f","line":1,"message":"m"}`; err != nil || string(got) != want {
		t.Errorf("Marshal = %s, %v, want %s", got, err, want)
	}
}

func TestSort(t *testing.T) {
	list := []Diagnostic{{Code: "b", File: "f", Line: 2}, {Code: "a", File: "f", Line: 2}, {Code: "z", File: "f", Line: 1, Severity: Error}, {Code: "x", File: "a", Line: 9}}
	if !HasErrors(list) || HasErrors(list[:2]) {
		t.Errorf("HasErrors = %v, %v, want true, false", HasErrors(list), HasErrors(list[:2]))
	}
	Sort(list)
	var got []string
	for _, d := range list {
		got = append(got, d.Code)
	}
	if diff := cmp.Diff([]string{"x", "z", "a", "b"}, got); diff != "" {
		t.Errorf("Sort (-want +got):\n%s", diff)
	}
}
