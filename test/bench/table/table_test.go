package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/test/plant"
)

func TestTimes(t *testing.T) {
	var all times
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	for _, tc := range []struct {
		all     times
		percent int
		want    time.Duration
	}{{nil, 50, 0}, {all, 0, 1}, {all, 50, 51}, {all, 95, 96}, {all, 100, 100}, {times{7}, 95, 7}} {
		if got := tc.all.at(tc.percent); got != tc.want {
			t.Errorf("%d of 100 of %d are below %v, want %v", tc.percent, len(tc.all), got, tc.want)
		}
	}
}

func TestTable(t *testing.T) {
	made := &table{title: "T", about: "About\nit.", head: []string{"", "ms", "budget", ""}}
	most := budget{1.5, "1.5 ×"}
	made.add(append([]string{"é", "1"}, most.cells(1.5)...)...)
	made.add(append([]string{"longer", "2"}, most.cells(1.51)...)...)
	made.add(append([]string{"none", none}, budget{}.cells(9)...)...)
	var text, markdown strings.Builder
	made.text(&text)
	made.markdown(&markdown)
	const wantText = "\nT\n  About\n  it.\n\n" +
		"           ms   budget\n" +
		"  é         1   ≤ 1.5 ×      met\n" +
		"  longer    2   ≤ 1.5 ×   missed\n" +
		"  none      –\n"
	const wantMarkdown = "\n### T\n\nAbout\nit.\n\n" +
		"|  | ms | budget |  |\n| --- | ---: | ---: | ---: |\n" +
		"| é | 1 | ≤ 1.5 × | met |\n| longer | 2 | ≤ 1.5 × | missed |\n| none | – |  |  |\n"
	if diff := cmp.Diff(strings.ReplaceAll(wantText, "ms   budget", "ms    budget"), text.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantMarkdown, markdown.String()); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(count(7), " ", count(1_234_567), " ", ms(0), " ", ms(1500*time.Microsecond)); got != "7 1,234,567 – 1.50 ms" {
		t.Errorf("numbers are written %q", got)
	}
}

func TestWanted(t *testing.T) {
	got, err := wantedOf("edits,start")
	if err != nil || len(got) != 2 || got[0].name != "start" || got[1].name != "edits" {
		t.Errorf("wantedOf = %v, %v, want start before edits, which change what starts measure", got, err)
	}
	if _, err := wantedOf("start,nothing"); err == nil {
		t.Error("wantedOf took a section that there is not")
	}
}

// The measurements concern the packs that were written: the server has their ids, all of
// them are walked, and every kind of description is edited.
func TestPlanted(t *testing.T) {
	const n = 60
	c := &collection{root: t.TempDir()}
	var err error
	if c.made, err = plant.Write(c.root, 1, n); err != nil {
		t.Fatal(err)
	}
	if got, err := plant.Walk(c.root); got != n || err != nil {
		t.Errorf("Walk = %d, %v, want %d packs", got, err, n)
	}
	scan := func() map[string]string {
		catalog, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: c.root, AttachAll: true}}})
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]string)
		for _, p := range catalog.Attached() {
			all[p.ID] = p.Description
		}
		return all
	}
	before := scan()
	for i, dir := range c.made {
		if id, err := c.id(i); err != nil || before[id] == "" {
			t.Errorf("pack %q is said to be %q, %v, and there is none of that id", dir, id, err)
		}
		file := filepath.Join(dir, "SKILL.md")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = edited(text, 7); err != nil {
			t.Fatalf("%q: %v", file, err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var wrong []string
	for id, description := range scan() {
		if description != "edit 7 "+before[id] {
			wrong = append(wrong, id)
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		t.Errorf("an edit of %q is not one of their descriptions", wrong)
	}
}
