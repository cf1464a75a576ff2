module github.com/fletching/fletching/bindings/go/roundtrip

go 1.26

require github.com/fletching/fletching/bindings/go v0.0.0

replace github.com/fletching/fletching/bindings/go => ../
