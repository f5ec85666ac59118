package tools

// Codes of the diagnostics this package reports. They are stable: people
// search for them and scripts match them.
const (
	CodeTooLarge     = "tools-too-large"       // the file is larger than allowed
	CodeTooMany      = "tools-too-many"        // more tools than allowed
	CodeNotAToolList = "tools-not-a-tool-list" // JSON, and something else than a list of tools
	CodeShape        = "tools-shape"           // a value has the wrong kind, or is out of range
	CodeUnknownKey   = "unknown-key"           // warning: a key that is not read
	CodeMore         = "more-problems"         // info: the list of problems was cut

	CodeJSONSyntax        = "json-syntax"         // not JSON
	CodeJSONComment       = "json-comment"        // a comment
	CodeJSONTrailingComma = "json-trailing-comma" // a comma before a closing bracket
	CodeJSONDuplicateKey  = "json-duplicate-key"  // a key twice in one object
	CodeJSONDepth         = "json-depth"          // nested too deeply
	CodeJSONNumber        = "json-number"         // a number too large to compute with

	CodeNameInvalid   = "tool-name-invalid"   // not [a-zA-Z0-9_-]{1,64}
	CodeNameDuplicate = "tool-name-duplicate" // equal, or equal to the eye, to another
	CodeNameReserved  = "tool-name-reserved"  // a name of this server's, or one that looks like another server's tool

	CodeDescriptionMissing = "description-missing" // warning: models have nothing to go by
	CodeDescriptionLong    = "description-long"    // warning: models see the beginning only
	CodeAnnotationsIgnored = "annotations-ignored" // warning: a pack makes claims about its own safety

	CodeSchemaInvalid  = "schema-invalid"  // not a JSON Schema, or none that can be checked here
	CodeSchemaTwice    = "schema-twice"    // inputSchema under two names
	CodeSchemaNotRead  = "schema-not-read" // warning: a declared-only tool whose schema is not one
	CodeDefaultInvalid = "default-invalid" // a default that its own schema refuses

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
	CodePolicyConflict       = "policy-conflict"           // two policies that exclude each other
)
