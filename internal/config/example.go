package config

// Example returns a configuration file with every key, its default and its
// purpose. Loading it changes nothing.
func Example() string { return example }

const example = `# config.yaml: every key with its default.
# A flag goes before a variable, and a variable before this file: log.level is
# --log-level and PACKS_MCP_LOG_LEVEL. Relative paths are relative to this file's
# folder, and ~/ is your home folder. Sizes: 10000, 16KiB, 64MiB, 1GiB. Times: 45s, 5m, 1h30m.

# Folders that hold packs. Their packs are found, and not attached, unless attach says so.
# Each is a path, or a mapping:
#   - ~/packs
#   - path: ~/team/packs
#     attach: all                       # all, none (default), or a list of pack ids
#     trust: user                       # user (default) or untrusted
#     entry: {billing: GUIDE.md}        # a pack's folder: its entry document
#     docs: {billing: [docs/api.md]}    # a pack's folder: documents shown with it
packs: []

# Other programs whose packs are found, and not attached: agents, claude, codex, copilot, cursor, gemini,
# gibberish, goose, opencode, stakpak. Of each, the project's folder goes before your own.
compat: []

mode: Global              # packs and tools that name other modes are not offered
project: ""               # empty: the git root of the working folder, if any; none with several http.tokens
tool_names: underscore    # underscore or dotted; some clients refuse a server whose names have dots
expose: tools             # skills: each attached pack is a tool, too, SKILL(arguments), as open_docs is

approval:
  policy: every-call        # balanced: once for each pack, and runs that do more than read; or first-run
  channels: [elicitation, page, terminal]   # who asks: the client, a page in the browser, packs-mcp approvals
  prompts: auto             # a prompt of a client: allow it on the client's word, or ask; auto: ask over HTTP
  notify: true              # the system shows a notification when a call waits that your client does not show
  wait: auto                # how long a call waits for the answer, less than pending; auto: by the client
  pending: 10m              # how long a question may be answered

# What you decide beforehand. Of all rules that match a call the strictest counts: deny, then ask, then allow.
#   - deny: {argv: [git, push, "**"]}           # "*" is any text, "**" any number of arguments
#     match: [[git, push, -f]]                  # examples, tried when this file is read
#     not_match: [[git, status]]
#   - ask: {pack: "acme/*", tool: deploy_prod}  # patterns, as in sandbox.grants
#   - allow: {pack: acme/docs, kind: [open, read]}   # kinds: open, read, enable, run, exec, attach
#   - allow: {kind: exec, argv: [git, status]}  # run: a pack's tool; exec: a command of the model's own
#   - allow: {argv: [make, test], env: [CC], cwd: project, stdin: true}   # and what else it may have
#     review: all                               # nothing that it changes is applied before you have seen it
rules: []

sandbox:
  require: partial          # none, partial or full: what this machine must be able to do, or nothing runs
  timeout_max: 300s         # a tool's own timeout is cut to this; a run waits for its turn as long
  # What tools get of your own, beyond pack, workspace and project. Every question about a run shows it:
  #   - pack: acme/deploy               # a pack's id, or a pattern: "acme/*", "*"
  #     kind: run                       # run: tools; exec: commands of the model's own; or [run, exec]
  #     tool: "*"                       # a tool's name, or a pattern; a run's only
  #     env: [GITHUB_TOKEN]             # variables, with the value that this program was started with
  #     read: [~/.config/gh]            # files and folders; your whole home folder is refused
  #     write: [~/.cache/gh]            # folders
  #     home: false                     # true: HOME is your own, with only what is granted in it
  #     git: write                      # the commits that it makes are applied; the rest of .git waits
  #     review: all                     # nothing that it changes is applied before you have seen it
  grants: []
  # Names in your folders that a run's changes wait for you in, as .git and CLAUDE.md do, at any depth:
  protect: []               # more of them, such as deploy/** or "*.secret"
  unprotect: []             # names of the list that do not wait, spelled as the reason says: CODEOWNERS

# Values for tools that ask for them, by name:
#   url: https://example.com
context: {}

limits:
  entry_doc: 1MiB           # an entry document
  frontmatter: 64KiB        # its frontmatter
  tools_file: 1MiB          # a file that declares tools
  pack_size: 4GiB           # all files of a pack; one that is larger alone is left out
  tools_per_pack: 200
  description: 1024         # characters that a model sees of a description
  read_page: 10000          # one page of a file
  read_page_max: 1MiB       # the largest page that a call may ask for
  read_file: 64MiB          # the largest file that is read
  output: 16KiB             # of a stream of a run, head and tail together
  output_markdown: 2KiB     # of a Markdown tool: head, and again tail
  output_total: 64MiB       # what a run may write before it is stopped
  timeout: 30s              # of a run whose tool names none
  cpu: timeout              # processor time of each process; where runs are confined
  memory: 2GiB              # of each process; where runs are confined
  processes: 256            # of a run; where runs are confined
  open_files: 1024          # of each process; where runs are confined
  file_size: 256MiB         # of a file that a run writes; where runs are confined
  workspace: 1GiB           # of a workspace
  layer: 512MiB             # what a run may change of your folders, all together; at level full in memory
  layer_names: 100000       # the same, in files, folders and links
  cache: 1GiB               # what a tool may keep between its runs in a cache; twice that while one runs
  cache_names: 100000       # the same, in files, folders and links
  held: 1GiB                # changes that wait for you, and what undoing takes; more is refused
  held_age: 24h             # after this, what waits is dropped
  enabled_tools: 60         # of a chat
  runs: 4                   # of a chat at the same time; others wait
  request: 8MiB             # one message of a client

http:                       # serving over HTTP instead of standard input and output
  addr: ""                  # --http: host:port; without a host, 127.0.0.1
  token: ""                 # PACKS_MCP_TOKEN: what every request brings along; empty: a new one at each start
  # Each person's own, instead: the name is in questions and in the audit log.
  #   - {name: ada, token: …}
  tokens: []
  tls_cert: ""              # a PEM file with the certificate and its chain
  tls_key: ""               # a PEM file with the key
  public_url: ""            # --public-url: how clients reach the server, when not by its address
  issuer: ""                # the authorization server that gives out the tokens, for clients that ask

audit:
  path: ""                  # empty: audit.jsonl among this program's files
  max_size: 64MiB           # then the file is renamed and a new one begun; 0: never
  full_arguments: false     # true: write arguments as they are, but for known tokens, instead of redacted

log:
  level: info               # debug, info, warn or error
  format: auto              # auto, text, json or pretty
`
