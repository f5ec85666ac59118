package search

import "strings"

// isCommon reports whether a word says nothing about the subject of a sentence, as
// words like "the" and "of" do.
func isCommon(word string) bool {
	return len(word) <= maxCommon && strings.Contains(commonWords, " "+word+" ")
}

const maxCommon = 8 // letters of the longest such word

const commonWords = ` a about after all also am an and any anything are as at be because been before being but by can could did do does
 doing for from get give go got had has have having he her here him his how i if in into is it its just let like made make me more most my
 no nor not now of off on once only or other our out over own please put set she should so some such than that the their them then there
 these they thing things this those through to too under until up us very want wants was we were what when where which while who whom why will
 with would you your d ll m re s t ve `
