package mockclient_test

import "syscall"

func detached() *syscall.SysProcAttr { return nil }
