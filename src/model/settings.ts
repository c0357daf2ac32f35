/** What is wrong with an agent's settings in orc.yaml; the path is the one inside them. */
export interface SettingsProblem {
  path: (string | number)[]
  message: string
  hint: string
}
