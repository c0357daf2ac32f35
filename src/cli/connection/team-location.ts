/** The team that a command addresses: its orc.yaml and its state folder, each undefined if unknown. */
export interface TeamLocation {
  readonly configFile?: string
  readonly stateFolder?: string
}
