//go:build unix && !linux

package mockclient

import "syscall"

func (s *spawn) attr() *syscall.SysProcAttr { return agentAttr() }
