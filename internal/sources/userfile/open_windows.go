package userfile

const openFlags = 0
