package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// If a pack says more than the bounds allow, exactly the part within the bound
// counts; the same holds for a query.
func TestBoundsOfLists(t *testing.T) {
	numbered := func(n int, last string) []string {
		var all []string
		for i := range n - 1 {
			all = append(all, fmt.Sprintf("word%d", i))
		}
		return append(all, last)
	}
	for name, tc := range map[string]struct {
		bound int
		doc   func(n int) Document
		query func(n int) string
	}{
		"tags":  {64, func(n int) Document { return Document{Tags: numbered(n, "needle")} }, nil},
		"tools": {256, func(n int) Document { return Document{Tools: numbered(n, "needle")} }, nil},
		"name":  {512, func(n int) Document { return Document{Name: strings.Repeat(" ", n-len("needle")) + "needle"} }, nil},
		"description": {4096, func(n int) Document {
			return Document{Description: strings.Repeat(" ", n-len("needle")) + "needle"}
		}, nil},
		"a tag": {512, func(n int) Document { return Document{Tags: []string{strings.Repeat(" ", n-len("needle")) + "needle"}} }, nil},
		"a tool": {512, func(n int) Document {
			return Document{Tools: []string{strings.Repeat(" ", n-len("needle")) + "needle"}}
		}, nil},
		"a query": {16, func(int) Document { return Document{Name: "needle"} },
			func(n int) string { return strings.Join(numbered(n, "needle"), " ") }},
		// A repeated word is not another word.
		"a query that repeats itself": {16, func(int) Document { return Document{Name: "needle"} },
			func(n int) string { return strings.Join(append(numbered(n, ""), numbered(n, "needle")...), " ") }},
	} {
		for _, over := range []int{0, 1} {
			query := "needle"
			if tc.query != nil {
				query = tc.query(tc.bound + over)
			}
			var want []int
			if over == 0 {
				want = []int{0}
			}
			n := tc.bound + over
			if got := exactly(indexOf([]Document{tc.doc(n)}), query, "needle"); !slices.Equal(got, want) {
				t.Errorf("%s of %d finds %v, want %v", name, n, got, want)
			}
		}
	}
}

// exactly returns what is found if the index has the word itself, and not only a
// beginning of it.
func exactly(x *Index, query, word string) []int {
	if _, ok := slices.BinarySearch(x.words, word); !ok {
		return nil
	}
	return found(x, query)
}

// One letter may be wrong in words of four letters. Shorter words are similar to too
// many others.
func TestTyposInShortWords(t *testing.T) {
	for _, tc := range []struct {
		query, name string
		want        bool
	}{
		{"ci", "cd", false},
		{"ci", "ic", false},
		{"ci", "i", false},
		{"cat", "car", false},
		{"cat", "act", false},
		{"cat", "at", false},
		{"cats", "cars", true},
		{"cats", "acts", true},
		{"cats", "cts", true},
		{"cats", "coats", true},
		{"жук", "жул", false}, // letters are counted, not bytes
	} {
		if got := found(indexOf([]Document{{Name: tc.name}}), tc.query) != nil; got != tc.want {
			t.Errorf("Search(%q) finds %q: %v, want %v", tc.query, tc.name, got, tc.want)
		}
	}
}

// Letters are compared without accents, however the accents are encoded, on either
// side: the words are equal, and not only similar.
func TestAccents(t *testing.T) {
	spellings := []string{"creme brulee", "crème brûlée", "CRÈME BRÛLÉE", "cre\u0300me bru\u0302le\u0301e", "Crème brulee"}
	for _, written := range spellings {
		x := indexOf([]Document{
			{Description: "Something else."},
			{Name: "cremes", Tags: []string{"brulees"}}, // words that begin like it, in better fields
			{Description: written},
		})
		for _, asked := range spellings {
			for w := range words(asked) {
				if w != "creme" && w != "brulee" {
					t.Errorf("%q has the word %q, want no accent and no other word", asked, w)
				}
			}
			hits := x.Search(asked, 3, Filter{Keep: func(doc int) bool { return doc != 1 }})
			one := x.Search("creme", 3, Filter{Keep: func(doc int) bool { return doc == 2 }})
			if len(hits) != 1 || hits[0].Index != 2 || hits[0].Score <= one[0].Score {
				t.Errorf("Search(%q) in %q = %v, and %v for one word: want both words", asked, written, hits, one)
			}
		}
	}
	if got := found(indexOf([]Document{{Name: "ﬁne ①"}}), "fine 1"); !slices.Equal(got, []int{0}) {
		t.Errorf("a ligature and a number in a circle are found as %v, want 0", got)
	}
}

// Of two words in the same field, the rarer one counts more.
func TestRareWordsCountMore(t *testing.T) {
	docs := slices.Repeat([]Document{{Description: "Deploys. deploy"}}, 20)
	docs = append(docs, Document{Description: "Zebra here."})
	x := indexOf(docs)
	for _, query := range []string{"deploy zebra", "zebra deploy"} {
		hits := x.Search(query, 2, Filter{})
		if len(hits) != 2 || hits[0].Index != 20 || hits[1].Index != 0 || hits[0].Score <= hits[1].Score {
			t.Errorf("Search(%q) = %v, want the only one with a zebra first", query, hits)
		}
	}
	// If both are equally rare, the document with another matching word wins.
	docs = append(docs, Document{Description: "Deploy cow."})
	if got := indexOf(docs).Search("deploy cow zebra", 1, Filter{}); len(got) != 1 || got[0].Index != 21 {
		t.Errorf("Search = %v, want the one with two of the words", got)
	}
}

// An abbreviation in a document counts if it also has another word of the query.
func TestAbbreviations(t *testing.T) {
	x := indexOf([]Document{
		0: {Name: "first", Description: "Opens and merges anything."},
		1: {Name: "second", Description: "Opens a PR, or merges."},
		2: {Name: "third", Description: "PR of the company."},
	})
	for query, want := range map[string][]int{
		"open a pull request":      {1, 0},
		"pull request":             nil, // an abbreviation alone is not enough
		"open pulls of requests":   {0, 1},
		"open a pull of a request": {0, 1},
		"opens pr":                 {1, 2, 0},
	} {
		got := found(x, query)
		if query == "opens pr" {
			slices.Sort(got[1:])
			slices.Sort(want[1:])
		}
		if !slices.Equal(got, want) {
			t.Errorf("Search(%q) = %v, want %v", query, got, want)
		}
	}
}

// C# and C++ are words that differ from C.
func TestNamesOfLanguages(t *testing.T) {
	x := indexOf([]Document{
		0: {Name: "c", Description: "Reviews C code."},
		1: {Name: "sharp", Description: "Reviews C# code."},
		2: {Name: "plus", Description: "Reviews C/C++ code."},
	})
	for query, want := range map[string][]int{"c#": {1}, "C++": {2}, "what about C#?": {1}, "in C++": {2}, "C": {0, 2}} {
		if got := found(x, query); !slices.Equal(got, want) {
			t.Errorf("Search(%q) = %v, want %v", query, got, want)
		}
	}
}
