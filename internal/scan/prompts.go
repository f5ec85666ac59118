package scan

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

// prompts returns patterns for texts aimed at a model. They match English wordings, and
// miss others.
func prompts() []pattern {
	const (
		who     = `(the |your |any |a )?(user|users|human|humans|person|operator|owner|developer|victim)\b`
		secrets = `(conversations?\b|chat (history|logs?|transcripts?)|transcripts?\b|system prompts?|entire context|full context|context window|environment variables|env vars|private keys?|ssh keys?|passwords\b|all (\w+ )?(secrets|credentials|tokens|api keys)|(user'?s?|their|found|discovered|any|available) (secrets|credentials|tokens|api keys|passwords|cookies|files)|\.env\b|~/\.ssh|id_rsa|\.aws/credentials|session cookies|browser cookies|seed phrases?|wallet)`
		places  = `(https?://|to (the |this |our |my |an? )?(following |remote |external )?(server|endpoint|url|webhook|address|host|collector|attacker)\b|webhook|\w@[\w-]+\.\w|telegram|discord|pastebin)`
		keys    = `(~/\.ssh|\.ssh/|id_rsa|id_ed25519|\.aws/credentials|\.env\b|mcp\.json|\.netrc|/etc/passwd|/etc/shadow|\.git-credentials|\.kube/config|\.docker/config|\.config/gcloud|keychain|\.npmrc|\.pypirc)`
		ours    = `(this (skill|pack|plugin|instruction|prompt|text|message|document|rule)s?|these (instructions|rules|lines|words)|itself|yourself)`
		spots   = `(every|all|each|any|other)\b( of)?( the)?( other)?( \w+){0,2} (skills?|packs?|plugins?|repositor(y|ies)|repos?|projects?|agents?|readmes?|workspaces?|machines?|servers?|directories|folders|sessions|contacts|skill\.md|readme\.md|agents\.md|claude\.md)`
	)
	return []pattern{
		said(ruleOverride, critical, high, `ignore|disregard|forget|override|bypass|set aside|follow`,
			`\b(ignore|disregard|forget|override|bypass|set aside|do not follow|don't follow|stop following)\s+((all|any|every|each|the|your|my|of|these|those|other|and|prior|previous)\s+)*(previous|prior|earlier|above|preceding|foregoing|former|system|original|initial|developer)(\s+(or|and)\s+\w+)?\s+(instruction|prompt|rule|message|direction|guideline|command|polic|safety|context|guardrail|constraint)`),
		said(ruleOverride, critical, high, `forget|ignore|disregard`,
			`\b(forget|ignore|disregard)\s+(everything|anything|all)\s+((that\s+)?you\s+(were|have been|'ve been|know|learned|was)|(said |written )?(above|before|earlier|previously))\b`),
		said(ruleOverride, critical, high, `instructions|directives`,
			`\b(the|these|following|new)\s+(instructions|directives)\s+(below\s+|here\s+)?(override|replace|supersede|take (precedence|priority) over)\s+(all|any|every|your|the|previous|other|system)\b`),

		said("prompt-secrecy", high, medium, `tell|inform|notify|alert|mention|reveal|disclose|report|show|let|say`,
			`\b(do not|don't|never|must not|should not|avoid)\s+(ever\s+)?(tell(ing)?|inform(ing)?|notify(ing)?|alert(ing)?|(mention|reveal|disclose|report|show|say)(ing)?\s+((this|that|it|these|them|anything|any of this|this \w+|these \w+|the \w+)\s+)?to|let(ting)?)\s+`+who).but(instructing),
		said("prompt-secrecy", high, medium, `without|keep|hide|hidden|conceal|must|should|may`,
			`\b(without\s+(the\s+)?(user|human)('s)?\s+(knowledge|knowing|noticing|awareness)|without\s+(telling|informing|notifying|alerting)\s+`+who+`|(keep|hide|conceal)\s+(this|it|these|that|them|all of this|the \w+|your \w+)\s+(a\s+)?(secret\s+|hidden\s+)?from\s+`+who+`|(user|human)s?\s+(must|should|may)\s+(not|never)\s+(know|notice|see this|find out|be\s+(told|informed|aware)))`),
		said("prompt-secrecy", high, medium, `silently|secretly|quietly|covertly|background`,
			`\b(silently|secretly|quietly|covertly)\s+(\w+\s+)?(send|upload|post|transmit|forward|copy|exfiltrat\w*|install|download|fetch|append|collect|read|execute|run)\b(?:[^.!?]|\.\w)*?\b(file|key|data|secret|credential|token|command|script|user|content|conversation|password|http|~/)`).but(described),

		said("prompt-approval", medium, low, `without`,
			`\b(run|execute|install|delete|remove|send|push|deploy|upload|publish|overwrite|proceed|act|apply|approve)\b(?:[^.!?]|\.\w)*?\bwithout\s+(first\s+)?(asking|prompting|waiting for|requesting|getting|seeking|confirming with|checking with)\s+(for\s+)?((the|your|any|user)\s+)*(user|human|permission|confirmation|approval|consent|them)\b`),
		said("prompt-approval", high, medium, `approve|bypass|disable|suppress|turn off|switch off|skip|permission`,
			`\b(auto-?approve|always approve|bypass|disable|suppress|turn off|switch off|skip|click through|dismiss)\s+(all\s+|any\s+|the\s+|every\s+|user\s+|your\s+)*(permissions?|approvals?|consent|sandbox(ing)?|safety (prompts?|filters?|guardrails?)|security (prompts?|warnings?|dialogs?|questions?))[- ]?(prompts?|checks?|dialogs?|dialogues?|requests?|warnings?|confirmations?|restrictions?|questions?|filters?|guardrails?|mode)?\b`).but(ofThisPerson),
		said("prompt-approval", high, low, `dangerously|bypasspermissions|--yolo|approval_policy`,
			`--dangerously-skip-permissions|--dangerously-bypass-approvals-and-sandbox|--dangerously-disable-sandbox|--yolo\b|bypasspermissions|approval_policy\s*=\s*["']?never`).at(code, prose, comment, meta).softer(prose),
		said("prompt-approval", high, medium, `consent|permission|authorized|authorised|approved|agreed`,
			`\b(the )?user (has|have) (already |previously |implicitly )?(given|granted|provided|consented|agreed|authori[sz]ed|approved)\b(?:[^.!?]|\.\w)*?\b(all|any|every|everything|full|blanket|no need)\b`),

		said("prompt-role", high, medium, `<|im_|[inst]|[/inst]|<<sys>>|<</sys>>|<|system|<|assistant|<|user|<|start_header`,
			`<\|im_(start|end)\|>|\[/?inst\]|<</?sys>>|<\|(system|assistant|user)\|>|<\|start_header_id\|>`).at(prose, comment, meta, remark),
		said("prompt-role", high, medium, `<system|</system|<important|<instruction|<secret|<admin`,
			`<\s*/?\s*(important|system|system[-_ ]?(prompt|message|reminder|instructions?)|instructions?|secret|admin)\s*>`).at(comment, meta),
		said("prompt-role", high, medium, `you are now|you are no longer|act as|pretend|mode|restrictions|jailb`,
			`\byou are (now|no longer) (dan\b|in (developer|god|jailbreak|admin|debug|maintenance|unrestricted) mode|jailbroken|unrestricted|unfiltered|free (of|from) (all |any )?(restrictions|rules|limits)|bound by|restricted by|subject to)|\b(developer|god|jailbreak|unrestricted|dan) mode (is )?(now )?(enabled|activated|active|on)\b|\b(pretend|act as if|assume) (that )?(you|there) (have|has|are|is) (no|not bound|unrestricted|without) ?(restrictions|rules|limits|guidelines|safety|by)|\byou have no (restrictions|rules|limits|limitations|ethical|safety)\b`),

		said("prompt-send", critical, high, `send|post|upload|transmit|forward|exfiltrate|email|submit|leak|deliver|append|encode|include`,
			`\b(send|post|upload|transmit|forward|exfiltrate|e-?mail|submit|leak|deliver|append|encode|include)\b[^!?]*?\b?`+secrets+`[^!?]*?`+places).but(described),
		said("prompt-send", critical, high, `.ssh|id_rsa|id_ed25519|.aws|.env|mcp.json|.netrc|/etc/|.git-c|.kube|.docker|gcloud|keychain|.npmrc|.pypirc`,
			`\b(read|open|cat|load|fetch|get|access|find|collect|gather|grab|copy|take)\b(?:[^.!?]|\.\w)*?`+keys+`[^!?]*?\b(pass|send|put|append|supply|post|upload|attach|forward|transmit|exfiltrate|include)(es|s|ing)?\b (it|its|them|the|that|this|as|to|in|all)`).at(prose, comment, meta, quoted),

		said("prompt-spread", critical, high, `this|these|itself|yourself`,
			`\b(copy|add|append|install|insert|propagate|spread|replicate|inject|paste|embed)\b(?:[^.!?]|\.\w)*?\b`+ours+`(?:[^.!?]|\.\w)*?\b(to|into|in|on|across|at)\b(?:[^.!?]|\.\w)*?\b`+spots),
		said("prompt-spread", critical, high, `infect|propagate|self-replicat|spread`,
			`\b(infect|self-replicat\w*|propagate yourself|spread (yourself|itself|this skill|this pack))\b(?:[^.!?]|\.\w)*?\b(skill|pack|agent|project|repo|machine|system)`),

		said("prompt-memory", medium, low, `claude.md|agents.md|gemini.md|.cursorrules|copilot-instructions|memory|system prompt`,
			`\b(add|write|save|append|store|put|insert|persist)\b(?:[^.!?]|\.\w)*?\b(to|into|in)\b(?:[^.!?]|\.\w)*?(\bclaude\.md|\bagents\.md|\bgemini\.md|\.cursorrules|copilot-instructions\.md|your (long-term |persistent )?memory|your system prompt)`),

		said("prompt-decode", high, medium, `decode|decrypt|deobfuscate|unscramble|rot13|base64`,
			`\b(decode|decrypt|deobfuscate|unscramble|rot13|base64)\b(?:[^.!?]|\.\w)*?\b(and|then)\s+(follow|execute|run|obey|perform|carry out|do what|act on)\b`).but(described),

		said("prompt-other-tool", medium, low, `mcp__`, `\bmcp__[a-z0-9-]+(_[a-z0-9-]+)*__[a-z0-9_*-]+`).at(meta),
		said("prompt-other-tool", medium, low, `before|instead of|whenever`,
			`\b(before|instead of|whenever)\s+(using|calling|invoking|you use|you call)\s+(any|every|all|another|other|the other)\s+(other\s+)?(tool|skill|server)s?\b`).at(meta),

		said("prompt-image", high, medium, `](http`,
			`!\[[^\]]*?\]\(https?://[^)\s]*?[?&=][^)\s]*?(\{[^)}]+?\}|\$\{?[a-z_]{2}|<[a-z_ -]+?>|%s|\[[a-z_ -]+?\])`),

		said(ruleHiddenComment, high, high, `assistant|agent|model|llm|claude|gpt|copilot|chatbot|system|instruction|ai`,
			`\b(ai|ais|assistants?|agents?|models?|llms?|claude|gpt|chatgpt|copilot|chatbots?|codex|gemini)\b[^.]*?\b(you must|must|shall|please|always|execute|run|send|fetch|secretly|silently|ignore)\b|^\s*(system|hidden|secret|admin)( (prompt|instructions?|note|message))?\s*:|\b(when|if|as) (you|an? (ai|agent|assistant|model|llm))\b[^.]*?\b(read|reads|see|sees|process|processes|load|loads)\b`).at(comment).but(maintaining),
	}
}

// said returns a pattern for a text aimed at a model. words are separated by bars.
func said(rule string, base, inData findings.Severity, words, expr string) pattern {
	return pattern{rule: rule, prompt: true, code: base, doc: inData, words: strings.Split(words, "|"), expr: lazily(expr)}
}

// at limits a pattern to some zones.
func (p pattern) at(zones ...zone) pattern {
	p.only = zones
	return p
}

// but gives a pattern a judge.
func (p pattern) but(judge func(u *unit, from, to int, s findings.Severity) (findings.Severity, bool)) pattern {
	p.judge = judge
	return p
}

// softer lowers the severity of matches in some zones by one.
func (p pattern) softer(zones ...zone) pattern {
	p.judge = func(u *unit, _, _ int, s findings.Severity) (findings.Severity, bool) {
		if slices.Contains(zones, u.zone) {
			s++
		}
		return s, true
	}
	return p
}

// instructing leaves out instructions on how to speak with the user: "don't tell the
// user to restart", "never tell the user it works".
func instructing(u *unit, _, to int, s findings.Severity) (findings.Severity, bool) {
	behind := strings.TrimLeft(u.behind(to), " *_")
	for _, word := range []string{"to ", "you ", "how ", "it ", "it's", "they ", "there", "\"", "'", "`", "what to", "which ", "when ", "where ", "work", "\"the", "wait", "type", "do ", "run ", "choose", "pick", "guess"} {
		if strings.HasPrefix(behind, word) {
			return s, false
		}
	}
	return s, true
}

// ofThisPerson leaves out approvals and permissions of other kinds, such as "turn off
// permissions on the bucket".
func ofThisPerson(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	lower := u.lower[from:to]
	for _, word := range []string{"prompt", "dialog", "confirm", "request", "warning", "question", "check", "filter", "guardrail", "sandbox"} {
		if strings.Contains(lower, word) {
			return described(u, from, to, s)
		}
	}
	return medium, true
}

// described lowers the severity of a script's description of itself, unless it addresses
// a model: many programs "send the credentials to the server".
func described(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	if (u.zone == remark || u.zone == code) && !addressed().MatchString(u.around(from, to)) {
		s = max(s, medium)
	}
	return s, true
}

// addressed matches a text that addresses a model.
var addressed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(ai|llms?|assistants?|claude|gpt|chatgpt|copilot|gemini|codex|(you|model|agent) (must|should|shall|need|have|can|may|will|are)|your (instructions|task|job)|(the|this|tell|inform) (user|human|operator))\b`)
})

// maintaining leaves out comments for the document's maintainers.
func maintaining(u *unit, from, to int, s findings.Severity) (findings.Severity, bool) {
	said := u.around(from, to)
	for _, word := range []string{"maintainer", "todo", "fixme", "contributor", "generated by", "prettier", "markdownlint", "begin:", "end:"} {
		if strings.Contains(said, word) {
			return low, true
		}
	}
	return s, true
}
