"""One mistake at a time, switched on by FAULT=NAME; faults.yaml says what each of them does."""
import os, sys

NAMES = {
    "cancel-during-model-request-is-error",
    "cancel-right-after-cancelled-turn-ignored",
    "idle-cancel-ends-next-turn",
    "late-yes-after-cancel-applies-patch",
    "mcp-call-not-stopped-by-cancel",
    "yes-once-means-always",
    "permission-ids-count-per-session",
    "denied-delete-leaves-file-renamed",
    "repeated-answer-not-shown",
    "only-first-part-of-message-shown",
    "plan-holds-changed-steps-only",
    "updates-named-after-last-prompted-session",
    "denied-patch-stays-pending",
    "refused-prompt-stays-in-context",
    "failed-turn-stays-in-context",
    "prompt-of-links-alone-refused",
    "same-folder-same-session",
    "model-error-told-as-answer",
    "shorter-patch-leaves-old-tail",
    "newer-version-refused",
    "second-call-of-cancelled-reply-has-no-result",
    "cancel-cuts-connection-of-other-session",
    "denied-patch-ends-turn-as-cancelled",
    "cancelled-prompt-answered-twice",
    "permission-error-never-heard",
    "permission-asked-before-call-is-announced",
    "denied-add-leaves-folder",
    "text-beside-calls-not-shown",
    "unknown-request-not-answered",
    "delete-diff-has-null-text",
    "location-line-zero-without-start",
    "tool-results-dropped-from-later-turns",
    "relative-paths-follow-newest-session",
    "second-mcp-server-dropped-when-first-fails",
    "mcp-servers-shared-by-sessions",
    "request-id-zero-not-answered",
    "unknown-notification-answered",
    "initialize-needs-client-capabilities",
    "patch-turns-crlf-into-lf",
    "busy-session-refuses-prompts-of-others",
    "second-prompt-detaches-running-turn",
    "cancelled-prompt-answered-before-its-updates",
    "late-mcp-answer-after-cancel-deafens-server",
    "cancel-with-open-permission-goes-on-to-next-call",
    "always-yes-counts-for-all-sessions",
    "one-no-refuses-rest-of-turn",
    "permission-names-first-patch-of-turn",
    "always-yes-ends-with-turn",
    "tool-ids-count-per-turn",
    "token-limit-without-calls-is-end-turn",
    "request-cap-told-as-max-steps",
    "mcp-error-shown-as-completed",
    "mcp-server-shared-by-name",
    "instructions-keep-first-folder",
    "mcp-arguments-split-at-spaces",
    "sibling-folder-counts-as-project",
    "patched-file-loses-its-mode",
    "refused-prompt-leaves-session-busy",
    "slow-session-new-blocks-reader",
    "older-version-echoed",
}
ON = os.environ.get("FAULT", "")
if ON and ON not in NAMES:
    print(f"pico: there is no fault {ON}", file=sys.stderr)
    sys.exit(2)


def fault(name):
    """Reports whether the fault is on."""
    return ON == name
