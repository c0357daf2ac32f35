/** Codex and Gemini take an Enter for a part of a paste when it comes faster after a letter than from a hand. */
export const HAND_MS = 200
