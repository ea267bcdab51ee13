"""Small planted worlds whose answer is known; the same seed gives the same world."""

from jaxemb.data.synthetic.forms import (
    PlantedForms,
    PlantedMorphology,
    planted_forms,
    planted_morphology,
)
from jaxemb.data.synthetic.reading import (
    PlantedInference,
    PlantedQuestions,
    planted_candidates,
    planted_inference,
    planted_questions,
)
from jaxemb.data.synthetic.senses import PlantedSenses, planted_senses
from jaxemb.data.synthetic.sentences import (
    PlantedSentiment,
    PlantedTopics,
    planted_sentiment,
    planted_topics,
)
from jaxemb.data.synthetic.spaces import (
    PlantedComponents,
    PlantedLanguages,
    PlantedSources,
    planted_components,
    planted_languages,
    planted_sources,
)

__all__ = [
    "PlantedComponents",
    "PlantedForms",
    "PlantedInference",
    "PlantedLanguages",
    "PlantedMorphology",
    "PlantedQuestions",
    "PlantedSenses",
    "PlantedSentiment",
    "PlantedSources",
    "PlantedTopics",
    "planted_candidates",
    "planted_components",
    "planted_forms",
    "planted_inference",
    "planted_languages",
    "planted_morphology",
    "planted_questions",
    "planted_senses",
    "planted_sentiment",
    "planted_sources",
    "planted_topics",
]
