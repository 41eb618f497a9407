"""Layouts learned from replies, so that later ones are cut without any rule.

`layouts` keeps them. `finder` finds the layout of a reply that was read, from the places of its turns
(`turn_places`). `layout` cuts a reply at the texts around its turns, and `turn_rules` decides whether these
are plain words, by their parts (`turn_parts`). These may change from reply to reply: numbers (`texts`), the
probability (`given_values`), notes in labels (`notes`), words above and below the turns (`asides`), the way
in which a turn is written (`turn_codes`), formulas in it (`formulas`), padding and quotation marks
(`rewrites`).
"""
