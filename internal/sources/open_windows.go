package sources

const openFlags = 0
