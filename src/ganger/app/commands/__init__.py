"""What single commands do beyond showing: land, clean, doctor, init, what a run stands on."""
