"""Work through providers' batch APIs: requests to send, a batch's lifecycle, results."""
