"""`leafcuttr config`: the settings of a broker and files of them."""
