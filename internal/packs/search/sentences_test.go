package search

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
)

// A sentence is what somebody says who wants one of these packs, which are given by
// the last segments of their ids. The sentences were written before the ranking,
// which contains none of their words.
type sentence struct {
	says string
	want []string
}

// maxMissed is how many of sixty sentences may have no wanted pack among the first
// three. Half of them are for each of the two collections.
const maxMissed = 3

// ofCorpus are sentences about the 259 real packs.
var ofCorpus = []sentence{
	{"make a gif for slack", []string{"slack-gif-creator"}},
	{"create a poster for our summer party", []string{"canvas-design"}},
	{"write the weekly status report for the leadership", []string{"internal-comms"}},
	{"help me build an MCP server in Python", []string{"mcp-builder"}},
	{"test my web app in a browser and take screenshots", []string{"webapp-testing"}},
	{"my msbuild builds are slow, find out why", []string{"build-perf-diagnostics", "build-perf-baseline", "eval-performance"}},
	{"collect a crash dump of a running .NET process", []string{"dump-collect"}},
	{"upgrade our project from .NET 8 to .NET 9", []string{"migrate-dotnet8-to-dotnet9"}},
	{"write a commit message", []string{"commit"}},
	{"create a new git branch", []string{"create-branch"}},
	{"review my Django code for slow queries", []string{"django-perf-review"}},
	{"link the GitHub issue to this pull request", []string{"pr-link-issue"}},
	{"build an AWS machine image", []string{"aws-ami-builder"}},
	{"write tests for a terraform module", []string{"terraform-test"}},
	{"split a big terraform configuration into modules", []string{"refactor-module"}},
	{"convert a video to mp4", []string{"ffmpeg-skill"}},
	{"resize an image", []string{"imagemagick-skill"}},
	{"run a query against my postgres database", []string{"postgres-skill"}},
	{"list the pods in my kubernetes cluster", []string{"kubernetes-skill"}},
	{"who is on call right now", []string{"pagerduty-skill"}},
	{"help me resolve a merge conflict", []string{"resolving-merge-conflicts"}},
	{"do test driven development", []string{"tdd", "test-driven-development"}},
	{"edit my article so that it reads better", []string{"edit-article"}},
	{"find notes in my obsidian vault", []string{"obsidian-vault"}},
	{"set up pre-commit hooks", []string{"setup-pre-commit"}},
	{"check a solana program for vulnerabilities", []string{"solana-vulnerability-scanner"}},
	{"fuzz a Rust crate", []string{"cargo-fuzz"}},
	{"write a semgrep rule", []string{"semgrep-rule-creator"}},
	{"clean up old git branches", []string{"git-cleanup"}},
	{"make this repository public as open source", []string{"open-sourcing"}},
}

// later are more sentences about the real packs, written after the ranking by
// somebody who had not seen its results for them.
var later = []sentence{
	{"find bugs in the changes on my branch", []string{"find-bugs"}},
	{"scan our smart contracts on Cosmos for security holes", []string{"cosmos-vulnerability-scanner"}},
	{"which python tooling should a new project use", []string{"modern-python"}},
	{"set up a dev container for Claude", []string{"devcontainer-setup"}},
	{"symbolicate a crash from an Android app", []string{"android-tombstone-symbolication"}},
	{"I want a landing page that looks beautiful", []string{"frontend-design"}},
	{"draw generative art with p5", []string{"algorithmic-art"}},
	{"parse SARIF output from a scanner", []string{"sarif-parsing"}},
	{"measure how fast this C# method is", []string{"microbenchmarking", "analyzing-dotnet-performance"}},
	{"make my slow Entity Framework queries faster", []string{"optimizing-ef-core-queries"}},
	{"what's the weather in Paris", []string{"weather-skill"}},
	{"see which containers are running", []string{"docker-skill"}},
	{"look up a trace in datadog", []string{"datadog-skill"}},
	{"draft a technical blog post", []string{"blog-writing-guide"}},
	{"open a pull request with a good description", []string{"pr-writer"}},
	{"are our GitHub Actions workflows safe", []string{"gha-security-review", "agentic-actions-auditor"}},
	{"turn this conversation into a spec", []string{"to-spec"}},
	{"interview me about my plan", []string{"grill-me", "grilling", "batch-grill-me", "grill-with-docs"}},
	{"brainstorm ideas before coding", []string{"brainstorming"}},
	{"publish a NuGet package without an API key", []string{"nuget-trusted-publishing"}},
	{"run our .NET unit tests", []string{"run-tests"}},
	{"who can see this record, check access control in Django", []string{"django-access-review"}},
	{"write documentation for this REST endpoint", []string{"document-api-endpoint"}},
	{"make a UI theme with our brand colors", []string{"theme-factory", "brand-guidelines"}},
	{"find memory errors with ASan", []string{"address-sanitizer"}},
	{"debug a failing msbuild log", []string{"binlog-failure-analysis", "binlog-generation"}},
	{"write a YARA rule for this malware", []string{"yara-rule-authoring"}},
	{"plan the implementation before writing code", []string{"writing-plans", "planner", "brainstorming"}},
	{"push a docker image to a registry", []string{"push-to-registry", "docker-skill"}},
	{"get a second opinion from another model", []string{"second-opinion"}},
	{"review a PR for security problems", []string{"security-review", "differential-review", "gha-security-review"}},
	{"port an app from .NET 9 to 10", []string{"migrate-dotnet9-to-dotnet10"}},
	{"pull request checks keep failing", []string{"iterate-pr"}},
	{"send a message to a Slack channel", []string{"slack-skill"}},
	{"query a Redis cache", []string{"redis-skill"}},
}

// common are packs of widespread kinds, as people describe them.
var common = []Document{
	{Name: "office/pptx pptx", Description: "Presentation creation, editing and analysis. Use when working with slides, decks or .pptx files: new PowerPoint presentations, layouts, speaker notes."},
	{Name: "office/docx docx", Description: "Create, edit and review Word documents (.docx), with tracked changes, comments and formatting."},
	{Name: "office/pdf pdf", Description: "Work with PDF files: extract text and tables, merge, split, rotate, fill in forms."},
	{Name: "office/xlsx xlsx", Description: "Spreadsheets with formulas, formatting and charts. Use for .xlsx, .csv and .tsv files in Excel."},
	{Name: "vercel-deploy vercel-deploy", Description: "Deploys applications and websites to Vercel. Use when the user says \"deploy my app\", or wants a preview link of a Next.js project."},
	{Name: "translator translator", Tags: []string{"language"}, Description: "Translates text between languages such as English, German, French, Spanish and Japanese, and keeps tone and formatting."},
	{Name: "calendar calendar", Description: "Reads and changes the user's calendar: finds free time, schedules meetings and sends invitations."},
	{Name: "email-drafts email-drafts", Tags: []string{"mail"}, Description: "Drafts and answers emails in the user's own voice."},
	{Name: "finance/invoices invoices", Description: "Makes invoices as PDF from a list of items, with tax and payment terms."},
	{Name: "data/sql-helper sql-helper", Description: "Writes, explains and optimizes SQL queries for PostgreSQL, MySQL and SQLite."},
	{Name: "ops/helm-charts helm-charts", Description: "Authors Helm charts and installs them in Kubernetes clusters."},
	{Name: "ops/log-triage log-triage", Description: "Searches application logs for errors, groups stack traces and proposes a cause."},
	{Name: "release-notes release-notes", Description: "Generates a changelog from merged pull requests and commits since the last tag."},
	{Name: "unit-tests unit-tests", Description: "Adds unit tests with pytest, Jest or JUnit to code without coverage."},
	{Name: "docker/dockerfile dockerfile", Description: "Writes small and secure Dockerfiles with several stages, and compose files."},
	{Name: "ci/github-actions github-actions", Description: "Creates GitHub Actions workflows that build, test and publish on each push."},
	{Name: "weather weather", Description: "Current conditions and the forecast for any city."},
	{Name: "home/recipes recipes", Description: "Plans meals and suggests recipes for the ingredients at hand, with a shopping list."},
	{Name: "travel-planner travel-planner", Description: "Plans trips: flights, hotels, sights, and a budget for each day."},
	{Name: "career/resume resume", Tags: []string{"cv"}, Description: "Tailors a resume and a cover letter to a job posting."},
	{Name: "meeting-notes meeting-notes", Description: "Summarizes a meeting transcript into decisions and action items."},
	{Name: "legal/contract-review contract-review", Description: "Reviews contracts clause by clause and points out risks and missing terms."},
	{Name: "web/accessibility accessibility", Tags: []string{"a11y"}, Description: "Audits web pages against WCAG: contrast, keyboard navigation, alternative text, ARIA."},
	{Name: "web/seo seo", Description: "Improves how pages rank in search engines: titles, meta descriptions, structured data, sitemaps."},
	{Name: "data/csv-cleaner csv-cleaner", Description: "Cleans tabular data: removes duplicates, mends encodings and dates, splits columns."},
	{Name: "data/charts charts", Description: "Draws bar, line and pie charts from data with matplotlib."},
	{Name: "regex regex", Description: "Builds and explains regular expressions, with examples of what they match."},
	{Name: "api/openapi-docs openapi-docs", Description: "Generates OpenAPI documentation for REST endpoints from source code."},
	{Name: "media/transcribe transcribe", Description: "Turns audio and video recordings into text with speaker labels and subtitles."},
	{Name: "learning/flashcards flashcards", Description: "Makes Anki flashcards from lecture notes and textbook chapters."},
}

// ofCommon are sentences about those.
var ofCommon = []sentence{
	{"create a PowerPoint presentation", []string{"pptx"}},
	{"how do I make a word document", []string{"docx"}},
	{"merge two pdf files into one", []string{"pdf"}},
	{"put these numbers into an excel spreadsheet", []string{"xlsx"}},
	{"deploy a Next.js app to Vercel", []string{"vercel-deploy"}},
	{"translate text to German", []string{"translator"}},
	{"when am I free for a meeting next week", []string{"calendar"}},
	{"reply to this email for me", []string{"email-drafts"}},
	{"I need an invoice for a customer", []string{"invoices"}},
	{"why is this SQL query so slow", []string{"sql-helper"}},
	{"write a helm chart for our service", []string{"helm-charts"}},
	{"look through the logs and find the error", []string{"log-triage"}},
	{"what changed since the last release, as a changelog", []string{"release-notes"}},
	{"add unit tests to this module with pytest", []string{"unit-tests"}},
	{"write a dockerfile for a node server", []string{"dockerfile"}},
	{"set up a github actions workflow", []string{"github-actions"}},
	{"will it rain tomorrow, what is the weather like", []string{"weather"}},
	{"what can I cook with these ingredients", []string{"recipes"}},
	{"plan a trip to Lisbon with flights and hotels", []string{"travel-planner"}},
	{"improve my cv for this job", []string{"resume"}},
	{"summarise the transcript of our meeting", []string{"meeting-notes"}},
	{"check the contract for risky clauses", []string{"contract-review"}},
	{"is my website accessible with a keyboard", []string{"accessibility"}},
	{"make my page rank better in google search", []string{"seo"}},
	{"remove duplicate rows from a csv file", []string{"csv-cleaner"}},
	{"draw a pie chart of our sales", []string{"charts"}},
	{"explain this regular expression to me", []string{"regex"}},
	{"generate OpenAPI docs for my REST API", []string{"openapi-docs"}},
	{"transcribe an audio recording", []string{"transcribe"}},
	{"make flashcards from my lecture notes", []string{"flashcards"}},
}

// Everyday sentences find the right pack among the first three, out of hundreds and
// of thousands.
func TestSentences(t *testing.T) {
	missed := 0
	for _, c := range []struct {
		name      string
		docs      func(*testing.T) []Document
		sentences []sentence
	}{
		{"real packs", corpus, ofCorpus},
		{"common packs among 10,000", func(*testing.T) []Document { return among(common, 10_000) }, ofCommon},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.sentences) != 30 {
				t.Fatalf("%d sentences, want 30", len(c.sentences))
			}
			missed += missedBy(t, c.docs(t), c.sentences)
		})
	}
	if missed > maxMissed {
		t.Errorf("%d of 60 sentences do not find their pack among the first three, want at most %d", missed, maxMissed)
	}
}

// So do most of the sentences written after the ranking: at most four of 35 fail.
func TestLaterSentences(t *testing.T) {
	if missed := missedBy(t, corpus(t), later); missed > 4 {
		t.Errorf("%d of %d sentences do not find their pack among the first three", missed, len(later))
	}
}

// missedBy returns how many of the sentences have no wanted pack among the first
// three.
func missedBy(t *testing.T, docs []Document, sentences []sentence) (missed int) {
	t.Helper()
	x := indexOf(docs)
	for _, s := range sentences {
		var got []string
		for _, h := range x.Search(s.says, 3, Filter{}) {
			id, _, _ := strings.Cut(docs[h.Index].Name, " ")
			got = append(got, path.Base(id))
		}
		if !slices.ContainsFunc(s.want, func(want string) bool { return slices.Contains(got, want) }) {
			missed++
			t.Logf("Search(%q) = %q, want one of %q", s.says, got, s.want)
		}
	}
	return missed
}

// corpus returns the real packs, as the server indexes them.
func corpus(t *testing.T) []Document {
	t.Helper()
	archive := filepath.Join("..", "..", "..", "..", "shared", "corpora", "packs.tar.gz")
	f, err := os.Open(archive)
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora: %v", err)
		}
		t.Skip("corpora: packs.tar.gz is not there")
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var docs []Document
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		if path.Base(h.Name) != "SKILL.md" {
			continue
		}
		src, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		doc, _ := frontmatter.Parse("SKILL.md", src)
		if doc == nil {
			continue // it is not served
		}
		dir := strings.TrimPrefix(path.Dir(h.Name), "packs/")
		docs = append(docs, Document{Name: dir + " " + doc.Name, Tags: doc.Tags, Description: doc.Description})
	}
}

// among returns docs, spread evenly among n others with typical texts: the same verbs
// and phrases in all, and nouns that each occur in hundreds.
func among(docs []Document, n int) []Document {
	r := rand.New(rand.NewPCG(22, 60))
	verbs := strings.Fields("create make build write review check find generate convert update deploy test manage analyze run plan summarize translate")
	things := strings.Fields(`account agent archive audit backup batch branch budget bundle cache catalog claim client cloud
		cluster column config coverage dashboard debugger delivery design diagram diff edge endpoint event export feature field
		gateway graph import incident index kernel label layout ledger library license loader locale market memory metric
		migration mobile model monitor network object offer package parser patch payment people policy price printer process
		product profile proposal queue quote record refund registry report response role rollback route sample scheduler schema
		score session share shell signal site snapshot spec sprint stack staging store story style subscription support survey
		switch table task team template tenant theme ticket timeline token topic trace tracker vendor view volume warehouse
		webhook widget window`)
	// A pack with one of these in its name is about the subject of the sentences.
	nouns := slices.Concat(things, strings.Fields(`api app billing contract customer database document file form image job journal
		meeting note order page pipeline prompt request script section server service slide source text user version word`))
	verb := func() string { return verbs[r.IntN(len(verbs))] }
	noun := func() string { return nouns[r.IntN(len(nouns))] }
	thing := func() string { return things[r.IntN(len(things))] }
	phrases := []func() string{
		func() string {
			return fmt.Sprintf("Use when the user wants to %s a %s or asks how to %s %ss.", verb(), noun(), verb(), noun())
		},
		func() string { return fmt.Sprintf("Helps with %ss and %ss in a %s.", noun(), noun(), noun()) },
		func() string {
			return fmt.Sprintf("A guide to the %s of the %s, for teams that %s it.", noun(), noun(), verb())
		},
		func() string { return fmt.Sprintf("%ss are made from a %s with this %s.", noun(), noun(), noun()) },
		func() string { return fmt.Sprintf("Do not use it to %s %ss.", verb(), noun()) },
	}
	all := make([]Document, 0, n+len(docs))
	for i := range n {
		if i%(n/len(docs)) == 0 && len(docs) > 0 {
			all, docs = append(all, docs[0]), docs[1:]
		}
		d := Document{Name: fmt.Sprintf("%s/%s-%s-%d", thing(), thing(), thing(), i)}
		if r.IntN(8) == 0 {
			d.Tags = []string{noun(), noun()}
		}
		d.Description = fmt.Sprintf("Can %s a %s for %ss.", verb(), noun(), noun())
		for range 1 + r.IntN(4) {
			d.Description += " " + phrases[r.IntN(len(phrases))]()
		}
		all = append(all, d)
	}
	return append(all, docs...)
}
