//go:build unix

package mockclient

import "syscall"

const openNonblock = syscall.O_NONBLOCK
