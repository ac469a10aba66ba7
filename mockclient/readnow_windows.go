package mockclient

import "os"

// readNow is not reached: pipes have no deadlines here, so that nobody asks.
func readNow(*os.File, []byte) (n int, some bool, err error) { return 0, false, nil }
