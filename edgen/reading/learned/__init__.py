"""Layouts learned from replies, so that later ones are cut without any rule."""
