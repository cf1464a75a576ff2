module outside

go 1.24
