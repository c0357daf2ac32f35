export interface AgentCandidate {
  readonly id: string
  readonly role?: string
  readonly capabilities: readonly string[]
}

/**
 * Chooses agents without a model: a greedy cover of the task's words by the words of roles and capabilities.
 * Deterministic.
 */
export function matchAgents(
  task: string,
  available: readonly AgentCandidate[],
): { ids: readonly string[]; why: string } {
  const wanted = stemsOf(task)
  const able = available.map((candidate) => ({ id: candidate.id, covers: coveredBy(candidate, wanted) }))
  const chosen: { id: string; covers: readonly string[] }[] = []
  const left = new Set(wanted.keys())
  for (;;) {
    let best: { id: string; covers: readonly string[] } | undefined
    for (const { id, covers } of able) {
      const fresh = covers.filter((stem) => left.has(stem))
      if (fresh.length > (best?.covers.length ?? 0)) best = { id, covers: fresh }
    }
    if (best === undefined) break
    chosen.push(best)
    for (const stem of best.covers) left.delete(stem)
  }
  if (chosen.length === 0) return { ids: [], why: 'No role or capability shares a word with the task.' }
  const reasons = chosen.map(
    ({ id, covers }) => `${id}: ${covers.map((stem) => wanted.get(stem)).join(', ')}`,
  )
  return { ids: chosen.map(({ id }) => id), why: `By words in common: ${reasons.join('; ')}.` }
}

function coveredBy(
  { id, role = '', capabilities }: AgentCandidate,
  wanted: ReadonlyMap<string, string>,
): readonly string[] {
  const own = stemsOf([id, role, ...capabilities].join(' '))
  return [...wanted.keys()].filter((stem) => own.has(stem))
}

/** Maps each stem to its first spelling. */
function stemsOf(text: string): Map<string, string> {
  const stems = new Map<string, string>()
  for (const [word] of text
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}+#]+/gu)) {
    if (STOP_WORDS.has(word) || word.length < 2) continue
    const stem = stemOf(word)
    if (!stems.has(stem)) stems.set(stem, word)
  }
  return stems
}

/** A rough stemmer: `tests`, `testing`, `tester` and `test` must be one word. */
function stemOf(word: string): string {
  for (const ending of ENDINGS) {
    if (word.endsWith(ending) && word.length - ending.length >= 3) return word.slice(0, -ending.length)
  }
  return word
}

/** Longest first. */
const ENDINGS = ['ations', 'ation', 'ings', 'ing', 'ers', 'ors', 'ies', 'er', 'or', 'ed', 'es', 'y', 's', 'e']

const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about after agent all also an and any are as at be before but by can could do does for from get give had has have
  how i if in into is it its let make me more my need needs new no not now of on one or our out please should so some
  task team than that the their them then there these they this to up us use using want was we what when where which
  who why will with work would you your`.split(/\s+/),
)
