module github.com/fletching/fletching/bindings/go

go 1.24
