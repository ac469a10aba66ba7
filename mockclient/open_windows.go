package mockclient

const openNonblock = 0
