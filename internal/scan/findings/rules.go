package findings

import (
	"slices"
	"strings"
	"sync"
)

// RulesVersion names the rules. It changes when a rule is added or its findings change, so
// that the record of a scan says which rules were used.
const RulesVersion = "2026.11"

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

// Rules returns all rules, by class and id.
func Rules() []Rule { return slices.Clone(table()) }

// HasRule reports whether there is a rule with an id.
func HasRule(id string) bool {
	return slices.ContainsFunc(table(), func(r Rule) bool { return r.ID == id })
}

// RuleOf returns an existing rule.
func RuleOf(id string) Rule {
	all := table()
	return all[slices.IndexFunc(all, func(r Rule) bool { return r.ID == id })]
}

var table = sync.OnceValue(func() []Rule {
	rules := []Rule{
		{"prompt-override", classModel, Critical, "It tells the model to ignore its instructions.", "Remove it. Say what the pack is for, and do not mention other instructions."},
		{"prompt-secrecy", classModel, High, "It wants something to be hidden from the user.", "Remove it. Users may see everything that is done for them."},
		{"prompt-approval", classModel, High, "It wants the model to act without approval, or turns approvals off.", "Remove it, and let the person decide."},
		{"prompt-role", classModel, High, "It imitates the markers that tell a model who is speaking, or tries to give the model another role.", "Remove it. Describe the task in plain sentences."},
		{"prompt-send", classModel, Critical, "It tells the model to send conversations, files or secrets somewhere.", "Remove it. If the pack must send data, use a declared tool, with arguments that the user sees."},
		{"prompt-spread", classModel, Critical, "It tells the model to copy the pack, or its instructions, to other places.", "Remove it."},
		{"prompt-memory", classModel, Medium, "It wants to write instructions where agents read them in every later chat.", "Ask the user to do that, and show what to write."},
		{"prompt-decode", classModel, High, "It tells the model to decode a text and follow the result.", "Write the instructions as plain text."},
		{"prompt-other-tool", classModel, Medium, "A description mentions another server's tool, so it can influence how that tool is used.", "Mention only this pack's own tools."},
		{"prompt-image", classModel, High, "The URL of an image has a placeholder for data, which would be sent when the image is shown.", "Remove the placeholder from the URL."},
		{"prompt-quoted", classModel, Low, "An example or a quotation contains text that would be an attack anywhere else.", "Nothing, if it is an example. But a model reads it too."},

		{"hidden-message", classHidden, Critical, "Invisible characters spell a message that a model can read and a person cannot see.", "Remove them."},
		{"hidden-order", classHidden, High, "Characters change the order in which others are shown, so a person and a program read different things.", "Remove them, or write them as escapes."},
		{"hidden-characters", classHidden, Medium, "It has invisible characters inside words.", "Remove them."},
		{"hidden-comment", classHidden, High, "A comment, which is not visible when the document is shown, addresses the model.", "Move it to the visible text, or remove it."},
		{"hidden-margin", classHidden, High, "A text is so far to the right, or so far down, that nobody sees it.", "Remove the blanks before it."},
		{"terminal-control", classHidden, Medium, "It has characters that control a terminal, and can hide or fake what the terminal shows.", "Remove them, or write them as escapes."},
		{"lookalike-letters", classHidden, High, "A word mixes Latin letters with others that look the same, so it is not the word that it seems to be.", "Write the word in one alphabet."},

		{"fetch-pipe", classCommands, High, "It downloads a program and runs it at once, whatever the server sends that day.", "Download a fixed version, compare its digest, then run it; or put it in the pack."},
		{"fetch-run", classCommands, High, "It downloads a file, makes it executable and runs it.", "Download a fixed version and compare its digest before running it; or put the program in the pack."},
		{"fetch-exec", classCommands, Critical, "It runs what it got from the network as code.", "Put the code in the pack."},
		{"fetch-address", classCommands, High, "It connects to a bare IP address on the internet, so nothing says whose it is.", "Use a host name, over https."},
		{"drop-host", classCommands, High, "It connects to a service that collects data from anyone, or hides who uses it.", "Use a host that the pack's author is responsible for."},
		{"locked-download", classCommands, Critical, "It wants the user to download a program or an archive that needs a password, which no scanner can look into.", "Publish the program openly, with its digest."},
		{"stealth-run", classCommands, High, "It starts a program in a way that hides it, or through another program that seems harmless.", "Start the program itself, visibly."},
		{"reverse-shell", classCommands, Critical, "It gives someone on the network a shell on this machine.", "Remove it."},
		{"obfuscated-exec", classCommands, Critical, "It decodes a text and runs it, so nobody can see what runs.", "Put the decoded code in the pack."},
		{"encoded-command", classCommands, Critical, "A text in base64 or hexadecimal decodes to a command.", "Write the command as plain text."},
		{"dynamic-exec", classCommands, Medium, "It runs code that it builds at run time.", "Call the function or program directly."},
		{"credential-read", classCommands, High, "It reads files that hold keys or passwords.", "Take what you need as an argument, or from a variable that the user grants."},
		{"credential-send", classCommands, Critical, "It reads keys, passwords or the whole environment, and sends something over the network.", "Remove one of the two."},
		{"dns-send", classCommands, High, "It puts data into a host name that it looks up, which sends the data past most firewalls.", "Remove it."},
		{"destructive", classCommands, High, "It deletes or overwrites far more than one project.", "Delete only named files inside the workspace."},
		{"persistence", classCommands, High, "It installs something that later runs by itself.", "Remove it. A pack should run only when it is called."},
		{"agent-config", classCommands, High, "It changes the settings or instructions of agents or editors.", "Tell the user what to change."},
		{"self-copy", classCommands, High, "It copies itself to other folders with packs, or writes its text into other packs.", "Remove it."},
		{"security-off", classCommands, High, "It turns off something that protects this machine, or deletes traces.", "Leave the protection on, and document what does not work with it."},
		{"tls-off", classCommands, Medium, "It does not check who it connects to.", "Leave the check on, and add the missing certificate."},
		{"as-root", classCommands, Medium, "It wants to run as the administrator of this machine.", "Tell the user what to install, and run without it."},
		{"root-forever", classCommands, Critical, "It makes someone an administrator of this machine permanently.", "Remove it."},
		{"container-escape", classCommands, High, "It starts a container that is not confined, or that can access the whole machine.", "Mount only the folder that you need."},
		{"miner", classCommands, Critical, "It mines cryptocurrency.", "Remove it."},
		{"spying", classCommands, High, "It records the keyboard, the screen, the microphone or the camera.", "Remove it."},
		{"untrusted-install", classCommands, Medium, "It installs packages from a source that is not verified.", "Use the usual registry, and fixed versions."},
		{"plain-http", classCommands, Low, "It downloads over http, where anyone on the network can change the data.", "Use https."},
		{"secret", classCommands, High, "It contains a key, token or password, which everyone who has the pack can use.", "Revoke it, and read a new one from a variable."},

		{"tool-code-injection", classDeclared, High, "A parameter becomes part of a program's code, so a caller who chooses its value can run anything.", "Pass it as a separate argument, after the code."},
		{"tool-inline-code", classDeclared, Medium, "A tool's program is a shell or interpreter, and its code is in the arguments.", "Put the code into a file of the pack, where people can read it and the pack's digest covers it."},
		{"tool-variable", classDeclared, High, "A tool sets a variable that holds a secret, or that decides which code its program loads or what it connects to.", "Remove the variable."},
		{"tool-network", classDeclared, Info, "A tool asks for the network.", "Nothing, if it needs the network."},
		{"tool-project-write", classDeclared, Info, "A tool runs in the project and may change it.", "Declare read_only if it changes nothing, or review: all."},
		{"tool-outside-folder", classDeclared, Medium, "A tool names a file or folder outside the pack, the project and the workspace.", "Take the path as a parameter."},
		{"tool-as-root", classDeclared, High, "A tool wants to run as another user or as the administrator.", "Run as the user who calls it."},
		{"tool-runs-download", classDeclared, Medium, "A tool downloads its program each time, so what runs may differ from what was approved.", "Install a fixed version in advance, or name one by its digest."},
		{"tool-not-read-only", classDeclared, High, "A tool says that it only reads, but its command deletes or changes something.", "Remove read_only."},
		{"tool-lookalike-program", classDeclared, High, "The name of a tool's program has letters that look like others.", "Rename the program."},
		{"allowed-tools-wide", classDeclared, Low, "The document wants to use a shell, or every tool, without asking.", "Name the commands: Bash(git status:*)."},
		{"hooks-declared", classDeclared, Medium, "The document declares commands that some agents run by themselves.", "Remove them, or say in the description what they do."},

		{"autorun-file", classFiles, Medium, "Editors, agents, shells or package managers run what is in this file without being told to.", "Leave it out of the pack."},
		{"compiled-program", classFiles, High, "It is a compiled program, which cannot be read.", "Put the source into the pack, or explain how to install the program."},
		{"magic-mismatch", classFiles, High, "It is a program or an archive with the file name of something else.", "Give it a name that fits, or leave it out."},
		{"nested-archive", classFiles, Medium, "It is an archive, and its contents were not scanned.", "Unpack it."},
		{"locked-archive", classFiles, High, "It is an archive with a password, so its contents cannot be scanned.", "Unpack it."},
		{"document-macros", classFiles, High, "It is an office document with macros.", "Save it without macros."},
		{"active-content", classFiles, Medium, "It is an image or document that contains a script.", "Remove the script."},
		{"link-outside", classFiles, High, "It is a link to something outside the pack.", "Replace it with a copy of its target, or remove it."},
		{"special-file", classFiles, High, "It is not a file, folder or link, but a device, socket or pipe.", "Remove it."},
		{"set-id", classFiles, High, "It runs as its owner, no matter who starts it.", "Remove the set-ID bit."},
		{"deceptive-name", classFiles, High, "Its name is not what it seems to be, or cannot be displayed.", "Rename it."},
		{"opaque-file", classFiles, Info, "It is neither text nor a known format, so it was not scanned.", "Nothing, if you know what it is."},

		{"scan-incomplete", classScan, High, "Not everything was scanned.", "Make the pack smaller, or the file readable, and scan again."},
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
