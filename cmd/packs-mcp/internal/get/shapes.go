package get

// What the commands print with --json.
type (
	changedPacks struct {
		Packs []result `json:"packs"`
	}
	foundPacks struct {
		Packs []listed `json:"packs"`
	}
	removedPacks struct {
		Removed []string `json:"removed"`
	}
	indexedPacks struct {
		Out   string        `json:"out"`
		Packs []indexedPack `json:"packs"`
		Done  bool          `json:"done"`
	}
	outdatedPacks struct {
		Outdated []look `json:"outdated"`
	}
	hits struct {
		Hits   []hit        `json:"hits"` // best first
		Failed []failedLook `json:"failed,omitempty"`
	}
	syncedPacks struct {
		Packs []state `json:"packs"`
	}
)
