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
	outdatedPacks struct {
		Outdated []look `json:"outdated"`
	}
	syncedPacks struct {
		Packs []state `json:"packs"`
	}
)
