package tools

// Codes of the diagnostics of every format. They are stable: people
// search for them and scripts match them.
const (
	CodeTooLarge     = "tools-too-large"       // the file is larger than allowed
	CodeTooMany      = "tools-too-many"        // more tools than allowed
	CodeNotAToolList = "tools-not-a-tool-list" // JSON, and something other than a list of tools
	CodeShape        = "tools-shape"           // a value has the wrong kind, or is out of range
	CodeUnknownKey   = "unknown-key"           // warning: a key that is not read
	CodeMore         = "more-problems"         // info: the list of problems was cut

	CodeNameInvalid   = "tool-name-invalid"   // not [a-zA-Z0-9_-]{1,64}
	CodeNameDuplicate = "tool-name-duplicate" // equal, or equal to the eye, to another
	CodeNameReserved  = "tool-name-reserved"  // a name of this server's, or one that looks like it or like another server's tool

	CodeDescriptionMissing = "description-missing" // warning: models have nothing to go by
	CodeDescriptionLong    = "description-long"    // warning: models see the beginning only
	CodeAnnotationsIgnored = "annotations-ignored" // warning: a pack makes claims about its own safety

	CodeSchemaInvalid  = "schema-invalid"  // not a JSON Schema, or none that can be checked here
	CodeSchemaTwice    = "schema-twice"    // inputSchema under two names
	CodeSchemaNotRead  = "schema-not-read" // warning: a declared-only tool whose schema is not one
	CodeDefaultInvalid = "default-invalid" // a default that its own schema refuses
	CodeSourceInvalid  = "source-invalid"  // a parameter's value is to come from where none can

	CodeCommandNotUnderstood = "command-not-understood"    // warning: so the tool is declared only
	CodeCommandLong          = "command-long"              // too many words
	CodeProgramInvalid       = "program-invalid"           // a program that cannot be looked up
	CodeCwdInvalid           = "cwd-invalid"               // not a folder that exists for tools
	CodePlaceholderInvalid   = "placeholder-invalid"       // not a placeholder, or not one that works there
	CodePlaceholderUnknown   = "placeholder-unknown"       // names no parameter
	CodePlaceholderInProgram = "placeholder-in-program"    // which program runs is not for the model to say
	CodePlaceholderInShell   = "placeholder-in-shell-code" // a value would become shell code
	CodePlaceholderInCode    = "placeholder-in-code"       // warning: a value would become a program of another interpreter
	CodeEnvName              = "env-name"                  // not a name of an environment variable
	CodeEnvForbidden         = "env-forbidden"             // a variable that packs do not get to set
	CodeParameterUnused      = "parameter-unused"          // warning: no placeholder names it
	CodePolicyConflict       = "policy-conflict"           // two policies that exclude each other
	CodeHost                 = "host"                      // not a host that a tool can name
	CodeCacheName            = "cache-name"                // not a name that a cache can have
)

// Codes of diagnostics that only *.tool.json files get.
const (
	CodeNotAToolPack   = "tool-pack-not-a-tool" // JSON, and something other than one tool
	CodeNotFlat        = "parameters-not-flat"  // warning: a JSON Schema where a tool pack lists its parameters
	CodeCommandMissing = "command-missing"      // warning: no command, so the tool is declared only
	CodeTimeoutLong    = "timeout-long"         // warning: it asks for more time than a tool gets
)

// Codes of diagnostics that only Markdown files get.
const (
	CodeNotUTF8 = "not-utf8" // a file that declares tools is no UTF-8

	CodeCommandFence       = "command-fence"        // a Command without a fenced command line
	CodeCommandSeveral     = "command-several"      // two commands where one belongs
	CodeCommandQuote       = "command-quote"        // a quote that is not closed
	CodeCommandShell       = "command-shell"        // warning: what would mean something to a shell is ordinary text
	CodeCommandComment     = "command-comment"      // warning: a comment above or below a command line
	CodeCommandWithoutTool = "command-without-tool" // warning: a Command under no level-3 heading
	CodeToolWithoutCommand = "tool-without-command" // warning: parameters under a name, and no Command
	CodeFenceUnclosed      = "fence-unclosed"       // a fence without an end, which takes a command in

	CodeParametersMissing = "parameters-missing"  // warning: no Parameters section
	CodeParametersNotRead = "parameters-not-read" // warning: parameters that are in no table, or a column that is not read
	CodeParametersTable   = "parameters-table"    // a table of parameters that cannot be used
	CodeParameterName     = "parameter-name"      // not a name that a placeholder can have, or one that occurs twice
	CodeParameterType     = "parameter-type"      // not a type; a warning if it is clear which one is meant
	CodeParameterRequired = "parameter-required"  // warning: neither yes nor no
	CodeDefaultNotRead    = "default-not-read"    // info: a default in words
	CodeDefaultConflict   = "default-conflict"    // the description and the command have different defaults: a warning, of a string an info
)
