module leafcuttr/clients

go 1.22

require (
	github.com/twmb/franz-go v1.18.0
	github.com/twmb/franz-go/pkg/kadm v1.14.0
)
