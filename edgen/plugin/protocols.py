"""Names for protocols that brief roles as edgen's own do, or ask for other things than conversations.

    from edgen.plugin.protocols import conversation_variables, labels_of

The promise of `edgen.plugin` does not cover these names: they may change in any minor release, which
CHANGELOG.md says.

Conversations
    Role: the name of a role, a text. Labels, labels_of: how a space's roles are called in texts. FENCED:
        the variables of a fence.
    Stage, play: a conversation turn by turn. TURN_VARIABLES, CONVERSATION_VARIABLES: what their templates
        may use besides.
    conversation_variables: the values of these. learner: the role that another one teaches.
    DEFAULT_VARIABLES, DIMENSIONS, ROLES: those of the space of five lists.
    has_five_dimensions: whether a space is that one.
Values for a space
    Protocol: the base of all protocols. call_seed: the seed of a call. read_values: a reply that lists
        values.
    LISTS: the five lists. LONGEST: characters of a value. KnownValues, value_problem: values that are old
        or no good.
"""

from __future__ import annotations

from edgen.plugin.lazy import names_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edgen.core.values import Role as Role
    from edgen.protocols.base import Protocol as Protocol
    from edgen.protocols.base import call_seed as call_seed
    from edgen.protocols.fence import FENCED as FENCED
    from edgen.protocols.parts import (
        CONVERSATION_VARIABLES as CONVERSATION_VARIABLES,
    )
    from edgen.protocols.parts import (
        TURN_VARIABLES as TURN_VARIABLES,
    )
    from edgen.protocols.parts import (
        Labels as Labels,
    )
    from edgen.protocols.parts import (
        conversation_variables as conversation_variables,
    )
    from edgen.protocols.parts import (
        labels_of as labels_of,
    )
    from edgen.protocols.parts import (
        learner as learner,
    )
    from edgen.protocols.stage import Stage as Stage
    from edgen.protocols.stage import play as play
    from edgen.reading.answers.values import LONGEST as LONGEST
    from edgen.reading.answers.values import read_values as read_values
    from edgen.space.entries import value_problem as value_problem
    from edgen.space.model import (
        DEFAULT_VARIABLES as DEFAULT_VARIABLES,
    )
    from edgen.space.model import (
        DIMENSIONS as DIMENSIONS,
    )
    from edgen.space.model import (
        LISTS as LISTS,
    )
    from edgen.space.model import (
        ROLES as ROLES,
    )
    from edgen.space.model import (
        has_five_dimensions as has_five_dimensions,
    )
    from edgen.space.similar_values import KnownValues as KnownValues
else:
    __getattr__ = names_from(
        __name__,
        {
            "edgen.core.values": "Role",
            "edgen.protocols.base": "Protocol call_seed",
            "edgen.protocols.parts": (
                "CONVERSATION_VARIABLES Labels TURN_VARIABLES conversation_variables labels_of learner"
            ),
            "edgen.protocols.fence": "FENCED",
            "edgen.protocols.stage": "Stage play",
            "edgen.reading.answers.values": "LONGEST read_values",
            "edgen.space.model": "DEFAULT_VARIABLES DIMENSIONS LISTS ROLES has_five_dimensions",
            "edgen.space.similar_values": "KnownValues",
            "edgen.space.entries": "value_problem",
        },
    )
