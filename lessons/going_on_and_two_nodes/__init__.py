"""What a job with many ranks needs: an end that every rank notices, a checkpoint, several nodes."""
