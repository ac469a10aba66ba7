package main

import "github.com/spf13/cobra"

// recordingCommands are those about recorded sessions and about editors.
func recordingCommands(h *host) []*cobra.Command {
	return []*cobra.Command{recordCommand(h), checkCommand(h), diffCommand(h), replayCommand(h), serveCommand(h),
		editorsCommand(h), convertRecordingCommand(h), reduceCommand(h)}
}
