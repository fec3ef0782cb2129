"""Small models in pairs, an original and a port with other names, and faults to put into the port."""
