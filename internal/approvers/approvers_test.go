package approvers

import "testing"

func who(t *testing.T, entries ...string) (all []Who) {
	t.Helper()
	for _, s := range entries {
		w, err := ParseWho(s)
		if err != nil {
			t.Fatalf("ParseWho(%q) = %v", s, err)
		}
		all = append(all, w)
	}
	return all
}

func TestMay(t *testing.T) {
	ada, grace := Person{Name: "ada"}, Person{Name: "grace", Groups: []string{"sre"}}
	operator, nobody := Person{Operator: true}, Person{}
	const digits, others = " 3f9a1c2d5b60e4a781c0ffd2", " 3f9a1c2d5b60e4a781c0ffd3"
	renamed, before := Person{Name: "molly@example.com" + digits, Groups: []string{"sre"}}, Person{Name: "mallory@example.com" + digits}
	sre := Rule{Packs: []string{"prod/*"}, Kinds: []string{"run", "exec"}, Who: who(t, "group:sre"), NotSelf: true, Where: "config.yaml:3"}
	for name, x := range map[string]struct {
		rules      []Rule
		pack, kind string
		p, asker   Person
		want       bool
	}{
		"no rule: who asks":                             {nil, "a", "run", ada, ada, true},
		"no rule: the operator":                         {nil, "a", "run", operator, ada, true},
		"no rule: somebody else":                        {nil, "a", "run", grace, ada, false},
		"no rule: nobody in particular is not the same": {nil, "a", "run", nobody, nobody, false},
		"a rule for another pack":                       {[]Rule{sre}, "dev/a", "run", ada, ada, true},
		"a rule for another kind":                       {[]Rule{sre}, "prod/a", "open", ada, ada, true},
		"in the group":                                  {[]Rule{sre}, "prod/a", "run", grace, ada, true},
		"not in the group":                              {[]Rule{sre}, "prod/a", "run", ada, grace, false},
		"the operator is in no group":                   {[]Rule{sre}, "prod/a", "run", operator, ada, false},
		"in the group, and asks":                        {[]Rule{sre}, "prod/a", "run", grace, grace, false},
		"asks with another token of the same name":      {[]Rule{sre}, "prod/a", "run", grace, Person{Name: "grace"}, false},
		"without a name, in the group":                  {[]Rule{sre}, "prod/a", "run", Person{Groups: []string{"sre"}}, nobody, false},
		"in the group, and nobody knows who asks":       {[]Rule{sre}, "prod/a", "run", grace, nobody, false},
		"the operator, and nobody knows who asks":       {[]Rule{{Who: who(t, "operator"), NotSelf: true}}, "a", "run", operator, nobody, false},
		"in the group, who may be who asks":             {[]Rule{{Who: who(t, "group:sre")}}, "a", "run", grace, nobody, true},
		"a person who is called like the group":         {[]Rule{sre}, "prod/a", "run", Person{Name: "group:sre"}, ada, false},
		"a person who is called sre":                    {[]Rule{sre}, "prod/a", "run", Person{Name: "sre"}, ada, false},
		"a group that is called like a person":          {[]Rule{{Who: who(t, "grace")}}, "a", "run", Person{Name: "eve", Groups: []string{"grace"}}, ada, false},
		"a person who is called operator":               {[]Rule{{Who: who(t, "operator")}}, "a", "run", Person{Name: "operator"}, ada, false},
		"a person who is called asker":                  {[]Rule{{Who: who(t, "asker")}}, "a", "run", Person{Name: "asker"}, ada, false},
		"a group that is called operator":               {[]Rule{{Who: who(t, "operator")}}, "a", "run", Person{Name: "eve", Groups: []string{"operator"}}, ada, false},
		"the operator, named":                           {[]Rule{{Who: who(t, "operator")}}, "a", "run", operator, ada, true},
		"the operator asks, not self":                   {[]Rule{{Who: who(t, "operator"), NotSelf: true}}, "a", "run", operator, operator, false},
		"who asks, named":                               {[]Rule{{Who: who(t, "asker", "group:sre")}}, "a", "run", ada, ada, true},
		"two rules, one names":                          {[]Rule{sre, {Who: who(t, "ada")}}, "prod/a", "run", grace, ada, false},
		"two rules, both name":                          {[]Rule{sre, {Who: who(t, "grace")}}, "prod/a", "run", grace, ada, true},
		"asks, and has another name at the provider":    {[]Rule{sre}, "prod/a", "run", renamed, before, false},
		"the same, asks":                                {[]Rule{{Who: who(t, "asker")}}, "a", "run", renamed, before, true},
		"no rule: the same":                             {nil, "a", "run", renamed, before, true},
		"another person of the same name":               {[]Rule{sre}, "prod/a", "run", renamed, Person{Name: "molly@example.com" + others}, true},
		"no rule: another person of the same name":      {nil, "a", "run", renamed, Person{Name: "molly@example.com" + others}, false},
		"the digits alone":                              {nil, "a", "run", renamed, Person{Name: digits[1:]}, false},
		"the case of a name counts":                     {[]Rule{{Who: who(t, "grace")}}, "a", "run", Person{Name: "Grace"}, ada, false},
	} {
		if got := For(x.rules, x.pack, x.kind).May(x.p, x.asker); got != x.want {
			t.Errorf("%s: May() = %v, want %v", name, got, x.want)
		}
	}
}

func TestOthers(t *testing.T) {
	ada := Person{Name: "ada"}
	for name, x := range map[string]struct {
		rules []Rule
		want  bool
	}{
		"no rule":                        {nil, false},
		"a group":                        {[]Rule{{Who: who(t, "group:sre")}}, true},
		"only who asks":                  {[]Rule{{Who: who(t, "asker")}}, false},
		"who asks, by name":              {[]Rule{{Who: who(t, "ada")}}, false},
		"somebody else":                  {[]Rule{{Who: who(t, "ada", "grace")}}, true},
		"two that have nobody in common": {[]Rule{{Who: who(t, "grace")}, {Who: who(t, "eve")}}, false},
		"a name and a group":             {[]Rule{{Who: who(t, "grace")}, {Who: who(t, "group:sre")}}, true},
		"who asks, by name, and a group": {[]Rule{{Who: who(t, "ada")}, {Who: who(t, "group:sre")}}, false},
		"the operator":                   {[]Rule{{Who: who(t, "operator")}}, false},
	} {
		if got := For(x.rules, "a", "run").Others(ada); got != x.want {
			t.Errorf("%s: Others() = %v, want %v", name, got, x.want)
		}
	}
	if For([]Rule{{Who: who(t, "group:sre"), NotSelf: true}}, "a", "run").Others(Person{}) {
		t.Error("Others() = true for who asks without a name, whom every member of the group may be")
	}
}

func TestParseWho(t *testing.T) {
	for _, s := range []string{"", "group:", "person:", "team:sre", " ada", "group: sre", "ada "} {
		if w, err := ParseWho(s); err == nil {
			t.Errorf("ParseWho(%q) = %+v, want an error", s, w)
		}
	}
	if w, err := ParseWho("person:group:sre"); err != nil || w != (Who{Named, "group:sre"}) {
		t.Errorf("ParseWho(person:group:sre) = %+v, %v", w, err)
	}
}

func TestNeedInWords(t *testing.T) {
	n := For([]Rule{{Who: who(t, "group:sre", "grace"), NotSelf: true, Where: "config.yaml:3"}, {Who: who(t, "operator"), Where: "config.yaml:9"}}, "a", "run")
	const want = "group sre or grace, not the person who asks (config.yaml:3); and also the operator of the server (config.yaml:9)"
	if got := n.String(); got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

// Names from an identity provider can be told from all others.
func TestProvided(t *testing.T) {
	const key = "3f9a1c2d5b60e4a781c0ffd2aaaa"
	if name := Provided("ada@example.com", key); name != "ada@example.com 3f9a1c2d5b60e4a781c0ffd2" || !IsProvided(name) {
		t.Errorf("Provided() = %q", name)
	}
	for _, name := range []string{"", "ada", "3f9a1c2d5b60e4a781c0ffd2", " 3f9a1c2d5b60e4a781c0ffd2", "ada 3f9a1c2d5b60e4a781c0ffd", "ada 3f9a1c2d5b60e4a781c0ffd2a", "ada 3F9A1C2D5B60E4A781C0FFD2", "ada\t3f9a1c2d5b60e4a781c0ffd2"} {
		if IsProvided(name) {
			t.Errorf("IsProvided(%q) = true", name)
		}
	}
}
