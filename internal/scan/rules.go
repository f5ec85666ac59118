package scan

import (
	"slices"
	"strings"
	"sync"
)

// Version names the rules. It changes when a rule is added or its findings change, so
// that the record of a scan says which rules were used.
const Version = "2026.11"

// A Rule is a kind of finding. Its id is stable, since people use it to switch the
// rule off.
type Rule struct {
	ID       string   `json:"id"`
	Class    string   `json:"class"`
	Severity Severity `json:"severity"` // the highest; a document that only mentions it gets a lower one, or none
	Why      string   `json:"why"`      // one sentence
	Fix      string   `json:"fix"`
}

// The classes of rules, in the order in which they are explained.
const (
	classModel    = "Texts for the model"
	classHidden   = "Hidden text"
	classCommands = "Commands"
	classDeclared = "What the pack declares"
	classFiles    = "Files"
	classScan     = "The scan itself"
)

// The rules that the code refers to; patterns name the others.
const (
	ruleHiddenMessage   = "hidden-message"
	ruleHiddenOrder     = "hidden-order"
	ruleHiddenChars     = "hidden-characters"
	ruleHiddenComment   = "hidden-comment"
	ruleHiddenMargin    = "hidden-margin"
	ruleTerminal        = "terminal-control"
	ruleLookalike       = "lookalike-letters"
	ruleEncodedCommand  = "encoded-command"
	ruleSecret          = "secret"
	ruleCredentialSend  = "credential-send"
	ruleToolCode        = "tool-inline-code"
	ruleToolInjection   = "tool-code-injection"
	ruleToolLoader      = "tool-variable"
	ruleToolNetwork     = "tool-network"
	ruleToolProject     = "tool-project-write"
	ruleToolOutside     = "tool-outside-folder"
	ruleToolRoot        = "tool-as-root"
	ruleToolDownload    = "tool-runs-download"
	ruleToolReadOnly    = "tool-not-read-only"
	ruleToolLookalike   = "tool-lookalike-program"
	ruleAllowedTools    = "allowed-tools-wide"
	ruleHooks           = "hooks-declared"
	ruleAutorun         = "autorun-file"
	ruleProgram         = "compiled-program"
	ruleMagic           = "magic-mismatch"
	ruleArchive         = "nested-archive"
	ruleLockedArchive   = "locked-archive"
	ruleMacros          = "document-macros"
	ruleActive          = "active-content"
	ruleLink            = "link-outside"
	ruleSpecial         = "special-file"
	ruleSetID           = "set-id"
	ruleName            = "deceptive-name"
	ruleOpaque          = "opaque-file"
	ruleIncomplete      = "scan-incomplete"
	ruleOverride        = "prompt-override"
	ruleCredentialRead  = "credential-read"
	ruleFetchRun        = "fetch-run"
	ruleReverseShell    = "reverse-shell"
	ruleInjectionFenced = "prompt-quoted"
)

// RulesVersion says which rules a pack was scanned with. It changes when a rule does.
const RulesVersion = "2026.11"

// Rules returns all rules, by class and id.
func Rules() []Rule { return slices.Clone(table()) }

// HasRule reports whether there is a rule with an id.
func HasRule(id string) bool {
	return slices.ContainsFunc(table(), func(r Rule) bool { return r.ID == id })
}

// ruleOf returns an existing rule.
func ruleOf(id string) Rule {
	all := table()
	return all[slices.IndexFunc(all, func(r Rule) bool { return r.ID == id })]
}

var table = sync.OnceValue(func() []Rule {
	rules := []Rule{
		{ruleOverride, classModel, Critical, "It tells the model to set aside the instructions it has.", "Remove it. Say what the pack is for, and nothing about other instructions."},
		{"prompt-secrecy", classModel, High, "It wants something kept from the user.", "Remove it. A user may see all that is done for them."},
		{"prompt-approval", classModel, High, "It wants the model to act without being allowed to, or switches approvals off.", "Remove it, and let the person decide."},
		{"prompt-role", classModel, High, "It imitates the marks by which a model tells who speaks, or talks it into another role.", "Remove it. Describe the task in plain sentences."},
		{"prompt-send", classModel, Critical, "It tells the model to send conversations, files or secrets somewhere.", "Remove it. If the pack must send data, let a declared tool do it, with arguments that the user sees."},
		{"prompt-spread", classModel, Critical, "It tells the model to copy the pack, or its instructions, to other places.", "Remove it."},
		{"prompt-memory", classModel, Medium, "It wants instructions written to where agents read them in every later chat.", "Ask the user to do that, and show what is written."},
		{"prompt-decode", classModel, High, "It tells the model to decode a text and follow what comes out.", "Write the instructions in the open."},
		{"prompt-other-tool", classModel, Medium, "A description speaks of another server's tool, so it can bend how that is used.", "Speak of this pack's own tools only."},
		{"prompt-image", classModel, High, "An address of a picture has a place for data, which showing the picture would send.", "Remove the placeholder from the address."},
		{ruleInjectionFenced, classModel, Low, "An example or a quotation has words that would be an attack in earnest.", "Nothing, if it is an example. A model reads it all the same."},

		{ruleHiddenMessage, classHidden, Critical, "Invisible characters spell a message that a model reads and a person does not see.", "Remove them."},
		{ruleHiddenOrder, classHidden, High, "Characters change the order in which others are shown, so a person reads something else than a program does.", "Remove them, or write them as escapes."},
		{ruleHiddenChars, classHidden, Medium, "It has characters that nobody sees, inside words.", "Remove them."},
		{ruleHiddenComment, classHidden, High, "A comment that nobody sees when the document is shown speaks to the model.", "Say it in the open, or remove it."},
		{ruleHiddenMargin, classHidden, High, "A text stands so far out, or so far below, that nobody sees it.", "Remove the blanks before it."},
		{ruleTerminal, classHidden, Medium, "It has characters that control a terminal, and can hide or fake what is shown there.", "Remove them, or write them as escapes."},
		{ruleLookalike, classHidden, High, "A word mixes Latin letters with others that look the same, so it is not the word that it seems.", "Write the word in one alphabet."},

		{"fetch-pipe", classCommands, High, "It fetches a program and runs it at once, whatever the other side sends that day.", "Fetch a fixed version, compare its digest, and run it in a second step; or put it in the pack."},
		{ruleFetchRun, classCommands, High, "It fetches a file, makes it a program and runs it.", "Compare the digest of a fixed version before it runs; or put the program in the pack."},
		{"fetch-exec", classCommands, Critical, "It runs what it got from the network as code.", "Put the code in the pack."},
		{"fetch-address", classCommands, High, "It speaks to a bare address on the internet, which no name vouches for.", "Use a host with a name, over https."},
		{"drop-host", classCommands, High, "It speaks to a service that collects what strangers send, or hides who they are.", "Use a host that the pack's author answers for."},
		{"locked-download", classCommands, Critical, "It wants the user to fetch a program or an archive that opens with a password, which no scanner can look into.", "Publish the program openly, with its digest."},
		{"stealth-run", classCommands, High, "It starts a program in a way that hides it, or by a program that only seems to do something else.", "Start the program itself, in the open."},
		{ruleReverseShell, classCommands, Critical, "It gives somebody on the network a shell on this machine.", "Remove it."},
		{"obfuscated-exec", classCommands, Critical, "It decodes a text and runs it, so nobody sees what runs.", "Put the code in the pack as it is."},
		{ruleEncodedCommand, classCommands, Critical, "A text in base64 or hexadecimal is a command when it is decoded.", "Write the command in the open."},
		{"dynamic-exec", classCommands, Medium, "It runs a text that it puts together while it runs.", "Call the function or program that is meant."},
		{ruleCredentialRead, classCommands, High, "It reads files in which keys and passwords are kept.", "Take what is needed as an argument or a variable that the user grants."},
		{ruleCredentialSend, classCommands, Critical, "It reads keys, passwords or the whole environment, and sends something to the network.", "Remove one of the two."},
		{"dns-send", classCommands, High, "It puts data into a name that it looks up, which sends them around most walls.", "Remove it."},
		{"destructive", classCommands, High, "It removes or overwrites far more than one project.", "Name exactly what may go, inside the workspace."},
		{"persistence", classCommands, High, "It leaves something behind that runs again by itself.", "Remove it. A pack runs when it is called."},
		{"agent-config", classCommands, High, "It changes the settings or instructions of agents or editors.", "Tell the user what to change."},
		{"self-copy", classCommands, High, "It copies itself to other folders of packs, or puts its text into other packs.", "Remove it."},
		{"security-off", classCommands, High, "It switches off something that protects this machine, or removes traces.", "Leave it on. Say what does not work with it."},
		{"tls-off", classCommands, Medium, "It does not check who it speaks to.", "Leave the check on; add the certificate that is missing."},
		{"as-root", classCommands, Medium, "It wants to be the administrator of this machine.", "Say what the user has to install, and do without."},
		{"root-forever", classCommands, Critical, "It makes somebody an administrator of this machine for good.", "Remove it."},
		{"container-escape", classCommands, High, "It starts a container that is not confined, or one that has the whole machine inside.", "Mount only the folder that is needed."},
		{"miner", classCommands, Critical, "It computes coins for somebody.", "Remove it."},
		{"spying", classCommands, High, "It watches the keyboard, the screen, the microphone or the camera.", "Remove it."},
		{"untrusted-install", classCommands, Medium, "It installs packages from a source that nobody checks.", "Use the usual registry, and fixed versions."},
		{"plain-http", classCommands, Low, "It fetches over http, where anybody on the way can change what comes.", "Use https."},
		{ruleSecret, classCommands, High, "It has a key, token or password in it, which everybody who has the pack can use.", "Revoke it, and take it from a variable."},

		{ruleToolInjection, classDeclared, High, "A parameter becomes part of a program's text, so the caller that chooses its value runs what it likes.", "Pass it as an argument of its own, behind the code."},
		{ruleToolCode, classDeclared, Medium, "A tool's program is a shell or interpreter, and its code is in the arguments.", "Put the code into a file of the pack, where it can be read and its digest counts."},
		{ruleToolLoader, classDeclared, High, "A tool sets a variable that holds a secret, or decides which code its program loads or who it speaks to.", "Remove the variable."},
		{ruleToolNetwork, classDeclared, Info, "A tool asks for the network.", "Nothing, if it needs that."},
		{ruleToolProject, classDeclared, Info, "A tool runs in the project and may change it.", "Declare read_only if it changes nothing, or review: all."},
		{ruleToolOutside, classDeclared, Medium, "A tool names a file or folder outside of the pack, the project and the workspace.", "Take the path as a parameter."},
		{ruleToolRoot, classDeclared, High, "A tool wants to be another user, or the administrator.", "Do without."},
		{ruleToolDownload, classDeclared, Medium, "A tool fetches its program whenever it runs, so what runs is not what was approved.", "Install a fixed version beforehand, or name one with its digest."},
		{ruleToolReadOnly, classDeclared, High, "A tool says that it only reads, and its command removes or changes something.", "Remove read_only."},
		{ruleToolLookalike, classDeclared, High, "A tool's program has letters that look like others.", "Rename the program."},
		{ruleAllowedTools, classDeclared, Low, "The document wants to use a shell, or every tool, without being asked.", "Name the commands: Bash(git status:*)."},
		{ruleHooks, classDeclared, Medium, "The document declares commands that some agents run by themselves.", "Remove them, or say in the description what they do."},

		{ruleAutorun, classFiles, Medium, "Editors, agents, shells or package managers run what this file says by themselves.", "Leave it out of the pack."},
		{ruleProgram, classFiles, High, "It is a compiled program, which nobody can read here.", "Put the source into the pack, or tell how to install the program."},
		{ruleMagic, classFiles, High, "It is a program or an archive with the name of something else.", "Give it its own name, or leave it out."},
		{ruleArchive, classFiles, Medium, "It is an archive, and what is in it was not looked at.", "Unpack it."},
		{ruleLockedArchive, classFiles, High, "It is an archive with a password, which nobody can look into.", "Unpack it."},
		{ruleMacros, classFiles, High, "It is an office document with macros.", "Save it without macros."},
		{ruleActive, classFiles, Medium, "It is a picture or document with a script in it.", "Remove the script."},
		{ruleLink, classFiles, High, "It is a link that leads out of the pack.", "Copy what it leads to, or remove it."},
		{ruleSpecial, classFiles, High, "It is no file, folder or link, but a device, socket or pipe.", "Remove it."},
		{ruleSetID, classFiles, High, "It would run as its owner, no matter who starts it.", "Remove the set-ID bit."},
		{ruleName, classFiles, High, "Its name is not what it seems, or cannot be shown.", "Rename it."},
		{ruleOpaque, classFiles, Info, "It is neither text nor a format that is known here, so it was not looked at.", "Nothing, if you know what it is."},

		{ruleIncomplete, classScan, High, "Not everything was looked at.", "Make the pack smaller, or the file readable, and scan again."},
	}
	order := []string{classModel, classHidden, classCommands, classDeclared, classFiles, classScan}
	slices.SortStableFunc(rules, func(a, b Rule) int {
		if a.Class != b.Class {
			return slices.Index(order, a.Class) - slices.Index(order, b.Class)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return rules
})
