"""Work by the providers' batch APIs: what to send, its life at the provider, what came back."""
