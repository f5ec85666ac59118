package spans

// otherMethod stands for a method that is not one of MCP's: a client could write
// anything there.
const otherMethod = "_OTHER"

// known reports whether a method is one of MCP's requests.
func known(method string) bool {
	switch method {
	case "initialize", "server/discover", "logging/setLevel", "completion/complete",
		"tools/list", "tools/call", "prompts/list", "prompts/get",
		"resources/list", "resources/templates/list", "resources/read", "resources/directory/read",
		"resources/subscribe", "resources/unsubscribe",
		"skills/list", "skills/get", "tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update":
		return true
	}
	return false
}

// telling reports whether the span of a method's request is useful: that of a
// ping is not, and a stream of notifications ends only with the client.
func telling(method string) bool { return method != "ping" && method != "subscriptions/listen" }
