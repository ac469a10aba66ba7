package process

import "syscall"

// stopSignal and goOnSignal do not exist.
const stopSignal, goOnSignal = syscall.Signal(0), syscall.Signal(0)
