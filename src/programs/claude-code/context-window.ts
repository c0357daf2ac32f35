const LARGE = 1_000_000
const USUAL = 200_000

/** Larger than the usual window without being asked for, as far as known. */
const LARGE_MODELS = /^claude-(?:opus-4-[78]|(?:opus|sonnet|haiku|fable|mythos)-[5-9])(?:-|$)/

/** How many tokens the model can hold (C26). `seen` corrects the table: what was held, fits. */
export function contextWindowOf(model: string, seen: number): number {
  const isLarge = model.endsWith('[1m]') || LARGE_MODELS.test(model) || seen > USUAL
  return isLarge ? LARGE : USUAL
}
