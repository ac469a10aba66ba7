package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-test/acp-test/replay"
)

func convertRecordingCommand(h *host) *cobra.Command {
	var to, llm, out, title string
	c := &cobra.Command{
		Use:   "convert FILE --to scenario",
		Short: "a recording as a scenario",
		Long: `Makes a scenario of a recording: the prompts with what each waited for, the answers
to permissions, the cancels, the files that were read, and the model's script, where
the model was recorded too (FILE with .llm.yaml for its ending). It goes to stdout,
or to --out. acp-test run --update writes its golden.`,
		Args: exactArgs(1, "a recording"),
		RunE: func(_ *cobra.Command, args []string) error {
			if to != "scenario" {
				return fmt.Errorf("convert --to %s: scenario is expected", to)
			}
			t, err := h.recordingOf(args[0])
			if err != nil {
				return err
			}
			var model []byte
			if llm == "" {
				model, err = os.ReadFile(strings.TrimSuffix(args[0], ".jsonl") + ".llm.yaml")
				if errors.Is(err, os.ErrNotExist) {
					model, err = nil, nil
				}
			} else {
				model, err = os.ReadFile(llm)
			}
			if err != nil {
				return fmt.Errorf("--llm: %w", err)
			}
			if title == "" {
				title = "Recorded: " + strings.TrimSuffix(filepath.Base(args[0]), ".jsonl") + "."
			}
			text, err := replay.Convert(t, title, model)
			if err != nil {
				return err
			}
			if out == "" {
				_, err = h.out.Write(text)
				return err
			}
			return writeFile(out, func(w io.Writer) error {
				_, err := w.Write(text)
				return err
			})
		},
	}
	c.Flags().StringVar(&to, "to", "scenario", "what to make of it: scenario")
	c.Flags().StringVar(&llm, "llm", "", "the model's script, a `FILE`")
	c.Flags().StringVar(&out, "out", "", "write to `FILE`")
	c.Flags().StringVar(&title, "title", "", "the first line, a sentence")
	return c
}
