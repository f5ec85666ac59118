package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

// indexOf returns the Index of a list.
func indexOf(docs []Document) *Index { return New(slices.Values(docs)) }

var shelf = []Document{
	0: {Name: "acme/billing/refunds", Tags: []string{"money"}, Tools: []string{"open_ticket", "listRefunds"}, Description: "Gives customers their money back, with a receipt."},
	1: {Name: "deploy-pipeline", Tags: []string{"ci"}, Tools: []string{"rollback"}, Description: "Deploys a service in steps."},
	2: {Name: "incident-triage", Description: "What to do first when a deploy went wrong and customers notice."},
	3: {Name: "café-menu", Description: "Writes menus. Ölwechsel ist etwas anderes."},
	4: {Name: "翻訳", Description: "文書を翻訳する"},
	5: {Name: "migrations", Tags: []string{"database"}, Description: "Changes tables while they are used."},
	6: {Name: "notes", Description: "Keeps notes about migration of birds, money and everything."},
}

func found(x *Index, query string) []int {
	var is []int
	for _, h := range x.Search(query, 20, Filter{}) {
		is = append(is, h.Index)
	}
	return is
}

func TestSearch(t *testing.T) {
	x := indexOf(shelf)
	for _, tc := range []struct {
		query string
		want  []int
	}{
		{"", nil},
		{" -- !", nil},
		{"refunds", []int{0}},
		{"REFUND", []int{0}},
		{"billing", []int{0}},
		{"money", []int{0, 6}},               // a tag before a description
		{"deploy", []int{1, 2}},              // a name before a description
		{"depoly", []int{1, 2}},              // two letters swapped
		{"deplyo", []int{1, 2}},              //
		{"deplo", []int{1, 2}},               // a beginning
		{"incidnt", []int{2}},                // one left out
		{"inccident", []int{2}},              // one too many
		{"incifent", []int{2}},               // one replaced
		{"incifnt", nil},                     // two are too many
		{"tirage", []int{2}},                 //
		{"migration", []int{6, 5}},           // the word itself, though in a description, or its beginning in a name: see below
		{"open ticket", []int{0}},            // a tool's name
		{"open_ticket", []int{0}},            //
		{"openticket", nil},                  //
		{"refunds list", []int{0}},           // a tool's name in two humps; "ist" is near to "list", which is there
		{"how to deploy it", []int{1, 2}},    // common words count for nothing beside others
		{"migrating", []int{6, 5}},           // another form of the word
		{"listrefunds", []int{0}},            // and whole
		{"cafe", []int{3}},                   // an accent less
		{"olwechsel", []int{3}},              //
		{"ölwechsel", []int{3}},              //
		{"翻訳", []int{4}},                     //
		{"文書", []int{4}},                     //
		{"deploy customers", []int{2, 1, 0}}, // both words before one of them
		{"to", []int{2}},                     // no typo in a short word
		{"a", []int{0, 1, 2}},                // a letter is a word, not a beginning
	} {
		got := found(x, tc.query)
		if tc.query == "migration" || tc.query == "migrating" { // which of the two is better is taste
			slices.Sort(got)
			slices.Sort(tc.want)
		}
		if tc.query == "a" {
			slices.Sort(got)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("Search(%q) (-want +got):\n%s", tc.query, diff)
		}
	}
}

// The field of a word, and how well the word matches, decide the order.
func TestRanking(t *testing.T) {
	x := indexOf([]Document{
		0: {Name: "other", Description: "All about a billing run and what is in it."},
		1: {Name: "tooled", Tools: []string{"start_billing"}, Description: "Runs."},
		2: {Name: "tagged", Tags: []string{"billing"}, Description: "Runs."},
		3: {Name: "team/billings-report", Description: "Runs."},
		4: {Name: "team/billing", Description: "Runs."},
		5: {Name: "billnig", Description: "Runs."},
		6: {Name: "unlike", Description: "Cooks."},
	})
	for _, query := range []string{
		"billing", "Billing", "BILLING", " billing! ",
		"biling",   // a letter less
		"billling", // one more
		"billinx",  // another
		"iblling",  // two swapped
		"billin",   // a beginning
	} {
		got := found(x, query)
		if slices.Contains(got, 6) {
			t.Errorf("Search(%q) = %v, with what is not about it", query, got)
		}
		// A document with the same typo, or without it, is equally near.
		got = slices.DeleteFunc(got, func(i int) bool { return i == 5 })
		want := []int{4, 3, 2, 1, 0}
		if !slices.Contains(got, 3) { // a wrong letter and an ending together are too much
			want = []int{4, 2, 1, 0}
		}
		if !slices.Equal(got, want) {
			t.Errorf("Search(%q) = %v, want %v: name, its beginning, tag, tool, description", query, got, want)
		}
	}
	for query, want := range map[string]int{
		"team/billing": 4, "team billing": 4, "billing team": 4, "billings-report": 3, "billings report": 3, "report": 3,
		"start_billing": 1, "startBilling": 1, "what is in it": 0, "cooks": 6,
	} {
		if got := found(x, query); len(got) == 0 || got[0] != want {
			t.Errorf("Search(%q) = %v, want %d first", query, got, want)
		}
	}
}

func TestBounds(t *testing.T) {
	x := indexOf([]Document{{Name: "first", Description: strings.Repeat("x ", maxDescription) + "needle"}, {Name: "second", Description: strings.Repeat("y", 10_000)}})
	if got := found(x, "needle"); got != nil {
		t.Errorf("what stands behind the bound was found: %v", got)
	}
	if got := found(x, strings.Repeat("y", 200)); !slices.Equal(got, []int{1}) {
		t.Errorf("a long word finds %v, want 1", got)
	}
	if got := found(x, strings.Repeat("z ", 2_000)+"first"); !slices.Equal(got, []int{0}) {
		t.Errorf("a long query finds %v, want 0", got)
	}
	if got := x.Search("first", 0, Filter{}); got != nil {
		t.Errorf("Search of none = %v", got)
	}
	if got := found(indexOf(nil), "x"); got != nil {
		t.Errorf("Search in nothing = %v", got)
	}
	many := make([]Document, 100)
	for i := range many {
		many[i].Name = fmt.Sprintf("same %d", i)
	}
	want := make([]int, 20)
	for i := range want {
		want[i] = i
	}
	if diff := cmp.Diff(want, found(indexOf(many), "same")); diff != "" {
		t.Errorf("of equals, the first 20 (-want +got):\n%s", diff)
	}
	var kept []int
	for _, h := range indexOf(many).Search("same", 3, Filter{Keep: func(doc int) bool { return doc%30 == 0 }}) {
		kept = append(kept, h.Index)
	}
	if diff := cmp.Diff([]int{0, 30, 60}, kept); diff != "" {
		t.Errorf("of those that are kept (-want +got):\n%s", diff)
	}
}

// The result must equal what looking at every document finds.
func FuzzSearch(f *testing.F) {
	f.Add("deploy", "a deploy, Ölwechsel 翻訳", "deplyo")
	f.Fuzz(func(t *testing.T, name, description, query string) {
		x := indexOf([]Document{{Name: name, Description: description}, {Name: "other"}})
		there := map[string]bool{}
		for w := range words(cut(name, maxName)) {
			there[w] = true
		}
		for w := range words(cut(description, maxDescription)) {
			there[w] = true
		}
		want := false
		for _, w := range wordsOf(query) {
			want = want || there[w]
		}
		if got := slices.Contains(found(x, query), 0); want && !got {
			t.Errorf("Search(%q) does not find %q, %q", query, name, description)
		}
	})
}

func TestNear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	word := func() string {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = 'a' + byte(r.IntN(3))
		}
		return string(b)
	}
	for range 20_000 {
		a, b := word(), word()
		if got, want := near(a, b), slow(a, b); got != want {
			t.Fatalf("near(%q, %q) = %v, want %v", a, b, got, want)
		}
	}
}

// slow returns everything that is similar to a.
func slow(a, b string) bool {
	if a == b {
		return false
	}
	for i := range len(a) + 1 {
		for c := byte('a'); c < 'd'; c++ {
			if a[:i]+string(c)+a[i:] == b || i < len(a) && a[:i]+string(c)+a[i+1:] == b {
				return true
			}
		}
		if i < len(a) && a[:i]+a[i+1:] == b || i+1 < len(a) && a[:i]+string(a[i+1])+string(a[i])+a[i+2:] == b {
			return true
		}
	}
	return false
}

// The part of a query beyond its bounds is ignored.
func TestLongQueries(t *testing.T) {
	x := indexOf(shelf)
	for name, tc := range map[string]struct {
		query string
		want  []int
	}{
		"just within":          {strings.Repeat(" ", maxQueryText-len("billing")) + "billing", []int{0}},
		"beyond":               {strings.Repeat(" ", maxQueryText) + "billing", nil},
		"the same, in letters": {strings.Repeat("é ", maxQueryText) + "billing", nil},
		"cut in a character":   {strings.Repeat(" ", maxQueryText-1) + "é billing", nil},
		"the sixteenth word":   {words15 + "billing", []int{0}},
		"the seventeenth word": {words15 + "xyz billing", nil},
	} {
		if got := found(x, tc.query); !slices.Equal(got, tc.want) {
			t.Errorf("%s: found %v, want %v", name, got, tc.want)
		}
	}
}

// words15 are fifteen words that are similar to no others.
const words15 = "qqqa qqqb qqqc qqqd qqqe qqqf qqqg qqqh qqqi qqqj qqqk qqql qqqm qqqn qqqo "

// Texts are folded in pieces, with the result that folding the whole would have.
func TestFoldInPieces(t *testing.T) {
	whole := func(text string) string {
		return strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFKD.String(text))
	}
	letters := []rune("aZ9 -éÅßŞǅﬁ①²½ªΣςйЖ翻訳ガカﾞ한ㄱก็ำः—“”’😀\u0300\u0301\u0327\u0345\u1100\u1161\u11a8\u200d\ufffd")
	r := rand.New(rand.NewPCG(7, 8))
	for range 5_000 {
		text := make([]rune, r.IntN(12))
		for i := range text {
			text[i] = letters[r.IntN(len(letters))]
		}
		if got, want := fold(string(text)), whole(string(text)); got != want {
			t.Fatalf("fold(%+q) = %+q, want %+q", string(text), got, want)
		}
	}
	if got, want := fold("a\xf3ſ\xffb"), "a\ufffds\ufffdb"; got != want {
		t.Errorf("fold of bytes that are not UTF-8 = %+q, want %+q", got, want)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		query, text string
		want        bool
	}{
		{"billing", "acme/billing", true},
		{"BILL", "acme/billing", true},
		{"other acme", "acme/billing", true},
		{"illing", "acme/billing", false}, // not a beginning
		{"biling", "acme/billing", false}, // a letter wrong
		{"a", "acme/billing", false},      // a letter is a word
		{"a", "plan a", true},
		{"翻", "文書を翻訳", true},
		{"", "acme/billing", false},
		{"?!", "acme/billing", false},
		{"needle", strings.Repeat("x ", maxName) + "needle", false},
	} {
		if got := Names(c.query)(c.text); got != c.want {
			t.Errorf("Names(%q)(%q) = %v, want %v", c.query, c.text, got, c.want)
		}
	}
}

func TestStem(t *testing.T) {
	for _, forms := range []string{
		"deploy deploys deployed deploying deployment deployments",
		"translate translates translated translating translation translations translator",
		"policy policies", "create creates created creating", "summary summaries", "access accessible accessibility",
		"document documents documented documentation", "merge merges merged merging", "run runs running", "agree agreed", "tag tagged tagging",
		"size sizes sized sizing", "hope hoping", "filter filters filtered", "call calls called", "relate relational", "happy happiness",
	} {
		all := strings.Fields(forms)
		for _, form := range all[1:] {
			if got, want := stem(form), stem(all[0]); got != want {
				t.Errorf("stem(%q) = %q, want %q as of %q", form, got, want, all[0])
			}
		}
	}
	for _, other := range []string{"", "a", "is", "42nd", "k8s", "größen", "文書"} {
		if got := stem(other); got != other {
			t.Errorf("stem(%q) = %q, want no other", other, got)
		}
	}
	for _, pair := range [][2]string{{"bus", "but"}, {"news", "newt"}, {"word", "work"}, {"sing", "sed"}} {
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("stem(%q) = stem(%q)", pair[0], pair[1])
		}
	}
}

// A letter may be wrong only in words that match nothing otherwise.
func TestTyposWhenNothingElse(t *testing.T) {
	docs := []Document{{Name: "word"}, {Name: "work"}, {Name: "world"}}
	if got := found(indexOf(docs), "word"); !slices.Equal(got, []int{0}) {
		t.Errorf("Search of a word that is there = %v, want its document alone", got)
	}
	if got := found(indexOf(docs[1:]), "word"); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("Search of a word that is not there = %v, want both that are near", got)
	}
}

// Equal documents are one hit, with all their places.
func TestCopies(t *testing.T) {
	docs := []Document{
		{Name: "a/refunds refunds", Description: "Money back."},
		{Name: "money", Description: "Refunds, among others."},
		{Name: "b/refunds refunds", Description: "Money back."},
		{Name: "c/d/refunds refunds", Description: "Money back."},
		{Name: "e/refunds refunds", Description: "Money back."},
	}
	same := func(doc int) uint64 {
		if doc == 1 {
			return 1
		}
		return 0
	}
	for limit, want := range map[int][]Hit{
		1: {{Index: 0, Copies: []int{2, 4}}},
		5: {{Index: 0, Copies: []int{2, 4}}, {Index: 1}},
	} {
		got := indexOf(docs).Search("refunds", limit, Filter{Mark: same, Keep: func(doc int) bool { return doc != 3 }})
		for i := range got {
			got[i].Score = 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Search for %d (-want +got):\n%s", limit, diff)
		}
	}
}
