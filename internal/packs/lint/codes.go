package lint

// Codes of the diagnostics of this package, next to those of the packages that
// read packs. They are stable. The severities are those of the default
// profile, or else of the profile that is named.
const (
	CodePathMissing     = "path-missing"     // error: nothing is there
	CodePathUnsupported = "path-unsupported" // error: neither a folder nor a file that declares anything
	CodeFileUnreadable  = "file-unreadable"  // error: a file that belongs to the pack cannot be read
	CodeNotChecked      = "not-checked"      // warning: a bound of the checks left something out

	CodeKeyUnknown    = "frontmatter-key-unknown" // info; a warning in skill-md, an error in agent-skills and under --strict
	CodeNameFormat    = "name-format"             // agent-skills, skill-md: error: not a name as the specification has it
	CodeNameDirectory = "name-directory"          // info; an error in agent-skills and skill-md
	CodeModeUnknown   = "mode-unknown"            // skill-md, tool-pack: warning: not a mode of the specification
	CodeSkillMissing  = "skill-missing"           // agent-skills, skill-md, skillkit: error: no SKILL.md
	CodeDescription   = "description-limit"       // agent-skills: error; skill-md: warning: longer than the specification allows
	CodeCompatibility = "compatibility-limit"     // agent-skills: error: not a text of at most 500 characters
	CodeYAMLStrict    = "yaml-not-strict"         // agent-skills: error: YAML that the reference refuses
	CodeVersion       = "version-missing"         // skill-md: error
	CodeVersionFormat = "version-format"          // skill-md: error; tool-pack: warning: not a semantic version
	CodeNoTools       = "no-tools"                // skill-md, tool-pack: error: no tool is declared
	CodeToolName      = "tool-name-format"        // tool-pack: error: not snake_case
	CodeDeclaredOnly  = "tool-declared-only"      // info; a warning in capability-pack, an error in tool-pack

	CodeTextHidden     = "text-hidden"      // warning: characters that nobody sees, in a text or the name of a file
	CodeTextBidi       = "text-bidi"        // warning: characters that change the order in which others are shown
	CodeTextOverride   = "text-override"    // warning: a text that wants to replace the model's instructions
	CodeTextSecrecy    = "text-secrecy"     // warning: a text that wants something kept from the user
	CodeTextOtherTool  = "text-other-tool"  // warning: a description or schema that mentions another server's tool
	CodeTextCredential = "text-credentials" // warning: a description or schema that speaks of files with keys in them
	CodeProgramLetters = "program-letters"  // warning: a program with letters outside ASCII in its name

	CodeProgramMissing       = "program-missing"        // warning: a tool runs a file that the pack does not have
	CodeProgramOutside       = "program-outside"        // warning: a tool runs a link that leads out of the pack
	CodeProgramMode          = "program-not-executable" // warning: a tool runs a file without the permission
	CodeProgramNoInterpreter = "program-no-interpreter" // warning: a tool runs a file that the system cannot start
	CodeProgramLineEnds      = "program-line-ends"      // warning: a script's first line ends in a carriage return
	CodeProgramNotHere       = "program-not-here"       // info: a program that this machine does not have
)
